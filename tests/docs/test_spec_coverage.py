"""Every test that docs/spec-coverage.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "spec-coverage.md"
_NAMED = re.compile(r"`([\w*/]+)`(:)?")


def named_tests() -> list[tuple[str, str | None]]:
    """Return each test file named in the last columns of the page's tables, with the test named in it or None."""
    found: list[tuple[str, str | None]] = []
    for line in PAGE.read_text("utf-8").splitlines():
        if not line.startswith("| ") or line.startswith("| asked"):
            continue
        place = folder = ""
        for name, opens in _NAMED.findall(line.split(" | ")[-1]):
            if "/" in name or opens:
                place = name if "/" in name else f"{folder}/{name}"
                folder = place.rpartition("/")[0]
                found.append((place, None))
            elif (ROOT / "tests" / folder / f"test_{name}.py").exists():
                found.append((f"{folder}/{name}", None))
            else:
                found.append((place, name))
    return found


def test_named_tests_exist() -> None:
    """Every test file that the page names exists, and contains the tests that the page names."""
    missing: list[str] = []
    for place, name in named_tests():
        folder, _, file = place.rpartition("/")
        path = ROOT / "tests" / folder / f"test_{file}.py"
        if name is None:
            if not path.exists() and not (ROOT / "tests" / place).is_dir():
                missing.append(place)
        elif not re.search(rf"def test_{name.replace('*', '.*')}\b", path.read_text("utf-8")):
            missing.append(f"{place}: {name}")
    assert len(named_tests()) > 80
    assert missing == []
