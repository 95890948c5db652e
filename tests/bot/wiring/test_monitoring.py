"""Which tasks have to live for as long as the process."""

from __future__ import annotations

import re
from pathlib import Path

from bot.wiring.pages import PROCESS_TASKS

README = Path(__file__).parents[3] / "bot" / "README.md"


def test_a_task_that_ends_with_the_bot_is_watched() -> None:
    """Otherwise one that has ended before is told nobody: what it does is missing until somebody misses it."""
    ends = r"with the (?:bot\b|process(?:\.|$| \|))"
    rows = re.findall(rf"^\| (`[^|]+) \| [^|]+ \| {ends}", README.read_text(encoding="utf-8"), re.MULTILINE)
    names = [re.findall(r"`([a-z-]+)", row)[0] for row in rows]
    assert "retention" in names
    assert [name for name in names if not name.startswith(PROCESS_TASKS)] == []
