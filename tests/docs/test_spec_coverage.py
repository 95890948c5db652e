"""Every test file that docs/spec-coverage.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "spec-coverage.md"
_ROW = re.compile(r"^\| (?!asked for)(.+) \| (`.*`) \|$", re.MULTILINE)


def test_named_tests_exist() -> None:
    """Each requirement names at least one test file or folder, without `tests/` and `test_`."""
    rows = _ROW.findall(PAGE.read_text("utf-8"))
    named = [name for _, tests in rows for name in re.findall(r"`([\w/]+)`", tests)]
    assert len(rows) > 50
    missing = []
    for name in named:
        folder, _, file = name.rpartition("/")
        if not (ROOT / "tests" / folder / f"test_{file}.py").exists() and not (ROOT / "tests" / name).is_dir():
            missing.append(name)
    assert missing == []
