"""Each event about memory is logged by its member of the one list, and each member by some code."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from bot.cli.log_view.events import SENTENCES
from bot.cli.log_view.tail import patterns_of
from compaction.log_events import MemoryEvent
from tests.sources import ROOT, nodes

# The folders whose log is about memory alone.
OF_MEMORY = ("compaction", "bot/memory")
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


@cache
def calls(folder: str) -> tuple[tuple[str, ast.Call], ...]:
    """Return each call in a folder's code, with its file."""
    files = sorted((ROOT / folder).rglob("*.py"))
    found = ((path.relative_to(ROOT).as_posix(), node) for path in files for node in nodes(path))
    return tuple((name, node) for name, node in found if isinstance(node, ast.Call))


def logged(folder: str) -> Iterator[tuple[str, ast.expr]]:
    """Yield what each call of a logger in a folder calls its event, with its file."""
    for name, call in calls(folder):
        match call.func:
            case ast.Attribute(value=ast.Name(id=logger) | ast.Attribute(attr=logger), attr=level):
                if level in LEVELS and "log" in logger and call.args:
                    yield name, call.args[0]


def members(node: ast.AST) -> set[str]:
    """Return the members of the list that an expression names."""
    return {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute) and is_list(each.value)}


def is_list(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == MemoryEvent.__name__


@pytest.mark.parametrize("folder", OF_MEMORY)
def test_no_event_of_memory_is_logged_by_another_name(folder: str) -> None:
    """No name stands in the call itself, where the list would not have it."""
    found = list(logged(folder))
    assert len(found) > 5
    assert [
        (name, ast.unparse(event)) for name, event in found if isinstance(event, (ast.Constant, ast.JoinedStr))
    ] == []


def test_each_listed_event_is_logged() -> None:
    """Also by what is handed to the reporter, or is the name of an event's class; and no literal repeats a name."""
    by_call: Counter[str] = Counter()
    for folder in (*OF_MEMORY, "bot/room", "bot/brain"):
        for _, call in calls(folder):
            by_call.update(name for argument in call.args[:1] for name in members(argument))
    events = nodes(ROOT / "compaction" / "events.py")
    named = [node.value for node in events if isinstance(node, ast.AnnAssign) and node.value is not None]
    by_call.update(name for value in named for name in members(value))
    assert set(by_call) == set(MemoryEvent.__members__)


@pytest.mark.slow
def test_tail_shows_the_events_of_the_list() -> None:
    """`--event memory` is the list without the checks that had nothing to do, and no sentence is about an event that
    nobody logs.
    """
    skipped = patterns_of(["skipped"])
    assert {*patterns_of(["memory"]), *skipped} == set(MemoryEvent)
    assert set(patterns_of(["compaction", "skipped"])) < set(MemoryEvent)
    assert not {*skipped} & {*patterns_of(["memory"])}
    literals = {
        event.value for folder in ("bot", "voice") for _, event in logged(folder) if isinstance(event, ast.Constant)
    }
    assert set(SENTENCES) - literals <= set(MemoryEvent)
