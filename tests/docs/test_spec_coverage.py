"""Every test, file and name of code that docs/spec-coverage.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "spec-coverage.md"
# Its last table has no tests.
NAMES = "## Names in the specifications"
_NAMED = re.compile(r"`([\w*/]+)`(:)?")


def named_tests() -> list[tuple[str, str | None]]:
    """Return each test file named in the last columns of the page's tables, with the test named in it or None."""
    found: list[tuple[str, str | None]] = []
    for line in PAGE.read_text("utf-8").partition(NAMES)[0].splitlines():
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


def named_code() -> list[tuple[set[str], set[str]]]:
    """Return the files and the names of code in each row of the page: what stands before its tests, or is our name."""
    found: list[tuple[set[str], set[str]]] = []
    for line in PAGE.read_text("utf-8").splitlines():
        cells = line.strip("| ").split(" | ")
        if len(cells) != 3 or cells[0] in {"asked for", "spec"}:
            continue
        ours = cells[2] if cells[0].isdecimal() else cells[1]
        quoted = re.findall(r"`([^`]+)`", ours)
        files = {each for each in quoted if re.fullmatch(r"[\w/]+(\.py|/\w*)", each) and not each.startswith("/")}
        found.append((files, {each for each in quoted if re.fullmatch(r"[A-Za-z_][\w.]*", each)} - files))
    return found


def test_named_code_exists() -> None:
    """Every file that the page names exists, and its rows name no function, class, setting or event that is not in one
    of the row's files.
    """
    rows = named_code()
    missing: list[str] = []
    for files, names in rows:
        paths = [ROOT / each for each in files]
        missing += [str(each.relative_to(ROOT)) for each in paths if not each.exists()]
        text = "\n".join(each.read_text("utf-8") for each in paths if each.is_file())
        missing += [each for each in names if files and not re.search(rf"\b{each.rpartition('.')[2]}\b", text)]
    assert len(rows) > 70
    assert missing == []
