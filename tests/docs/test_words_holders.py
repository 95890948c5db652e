"""The table of bot/README.md: what holds words of people, what becomes of it, and which test proves that. It is made
from the code here.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from bot.store.tables import OF_PEOPLE, metadata

REPOSITORY = Path(__file__).parents[2]
HEADING = "## Words of people\n"
# What other parts are made of.
NOT_YET = {"RoomPart"}
COLUMNS_TEST = "`tests/bot/store/test_columns_of_people.py`"


def holders() -> dict[str, str]:
    """Return the classes of the bot that hold words, each with the first sentence of its `on_withdrawn`."""
    found: dict[str, str] = {}
    for path in sorted((REPOSITORY / "bot").rglob("*.py")):
        module = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        for made in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(made, ast.ClassDef) or any("Protocol" in ast.unparse(base) for base in made.bases):
                continue
            if made.name in NOT_YET:
                continue
            for method in made.body:
                if isinstance(method, ast.FunctionDef) and method.name == "on_withdrawn":
                    told = " ".join((ast.get_docstring(method) or "").split())
                    found[f"{module}.{made.name}"] = told.partition(". ")[0].rstrip(".")
    return found


def proofs() -> dict[str, list[str]]:
    """Return the test files that are marked as the proof of each holder."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((REPOSITORY / "tests").rglob("test_*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.withdraws":
                (holder,) = call.args
                assert isinstance(holder, ast.Constant)
                found[str(holder.value)].append(f"`{path.relative_to(REPOSITORY)}`")
    return found


def table() -> str:
    """Return the table as the page shows it."""
    rows = ["| holder | what it does when words are withdrawn | test |", "|---|---|---|"]
    tests = proofs()
    rows += [f"| `{name}` | {told} | {', '.join(tests[name])} |" for name, told in holders().items()]
    for each in metadata.sorted_tables:
        names = [column.name for column in each.columns if OF_PEOPLE in column.info]
        ways = [column.info[OF_PEOPLE] for column in each.columns if OF_PEOPLE in column.info]
        if names:
            goes = [
                "deleted with the person" if all(way.forgotten for way in ways) else "stays: it is their own choice",
                "and with the session" if all(way.expires for way in ways) else "until it is changed",
            ]
            rows.append(f"| table `{each.name}`: {', '.join(names)} | {', '.join(goes)} | {COLUMNS_TEST} |")
    return "\n".join(rows) + "\n"


def test_every_holder_is_proved() -> None:
    """A class that takes the event has a test, and a test names a class that is there."""
    assert holders().keys() == proofs().keys()


def test_the_page_shows_the_table() -> None:
    """If this fails, put the table that it shows into bot/README.md."""
    page = (REPOSITORY / "bot" / "README.md").read_text("utf-8")
    assert HEADING in page
    assert table() in page, table()
