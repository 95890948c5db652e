"""The READMEs' tables of tasks have every task that has a fixed name: whoever reads one in a dump finds its owner."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.docs.pages import REPOSITORY
from tests.sources import nodes

TABLES = {"bot": "bot", "compaction": "compaction", "voice": "bot"}
STARTERS = {"background_task", "create_task", "logged_task", "owned_task", "run_shielded"}


def task_names(package: str) -> Iterator[str]:
    """Yield the fixed names of a package's tasks, and the beginnings of those that end with a number or a name."""
    found = (node for path in (REPOSITORY / package).rglob("*.py") for node in nodes(path))
    for call in (each for each in found if isinstance(each, ast.Call)):
        called = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        for name in (each.value for each in call.keywords if each.arg == "name" and called in STARTERS):
            head = name.values[0] if isinstance(name, ast.JoinedStr) else name
            if isinstance(head, ast.Constant):
                yield str(head.value)


@pytest.mark.parametrize(("package", "readme"), TABLES.items())
def test_every_task_is_in_a_table(package: str, readme: str) -> None:
    """No task of the bot's process is without its owner and its end."""
    tables = (REPOSITORY / readme / "README.md").read_text("utf-8")
    if package == "voice":
        tables += (REPOSITORY / "voice" / "transport" / "README.md").read_text("utf-8")
    names = set(task_names(package))
    assert names
    assert {name for name in names if name not in tables} == set()
