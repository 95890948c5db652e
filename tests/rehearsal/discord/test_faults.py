"""The page of the local Discord names every fault."""

from __future__ import annotations

import re
from pathlib import Path

from rehearsal.discord.faults import FAULTS


def test_every_fault_is_documented() -> None:
    """The page names every fault with its options and their defaults, and no others."""
    page = (Path(__file__).parents[3] / "docs" / "rehearsal.md").read_text()
    rows = re.findall(r"^- `(\w+)`(?: \((.*?)\))?: ", page, re.MULTILINE)
    documented = {name: dict(re.findall(r"`(\w+)` ([\d.]+)", options)) for name, options in rows if name in FAULTS}
    assert documented == {name: {key: f"{value:g}" for key, value in taken.items()} for name, taken in FAULTS.items()}
