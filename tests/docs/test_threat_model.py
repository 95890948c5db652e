"""Every test file that docs/threat-model.md names exists, for each of the 25 promises."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "threat-model.md"
_ROW = re.compile(r"^(\d+)\. .+ \((.+)\)$", re.MULTILINE)


def test_named_tests_exist() -> None:
    """Each promise names at least one test file, and all of them exist."""
    rows = _ROW.findall(PAGE.read_text("utf-8"))
    assert [int(number) for number, _ in rows] == list(range(1, 27))
    named = [re.findall(r"`(tests/[\w/]+\.py)`", tests) for _, tests in rows]
    assert all(named)
    assert [path for paths in named for path in paths if not (ROOT / path).exists()] == []
