"""Every test that docs/threat-model.md names exists, for each of the 25 findings."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "threat-model.md"
_ROW = re.compile(r"^\| (\d+) \| .+ \| (.+) \|$", re.MULTILINE)
_NAMED = re.compile(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`")


def test_named_tests_exist() -> None:
    """Each finding names at least one test, and all of them exist. A name alone is in the file before it."""
    numbers: list[int] = []
    missing: list[str] = []
    for number, tests in _ROW.findall(PAGE.read_text("utf-8")):
        numbers.append(int(number))
        path = ""
        for named, name in _NAMED.findall(tests):
            path = named or path
            text = (ROOT / path).read_text("utf-8") if path and (ROOT / path).exists() else ""
            if not re.search(rf"def {name}\(" if name else r"def test_", text):
                missing.append(f"{path}::{name}")
        assert path, number
    assert numbers == list(range(1, 26))
    assert missing == []
