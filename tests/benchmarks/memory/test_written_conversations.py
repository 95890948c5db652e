"""The conversations that were written for this project."""

from __future__ import annotations

from itertools import pairwise

import pytest

from benchmarks.memory.evaluation import folds_possible
from benchmarks.memory.written_conversations import LONG, NAMES, read_written


@pytest.mark.parametrize("name", [*NAMES, LONG])
def test_labels_name_lines_of_the_conversation(name: str) -> None:
    """Facts are in the order of their lines, and time does not run backwards."""
    written = read_written(name)
    lines = written.conversation.lines
    assert all(0 <= fact.turn < len(lines) for fact in written.facts)
    assert max(written.chatter) < len(lines)
    assert all(one.at <= other.at for one, other in pairwise(lines))


def test_long_conversation_is_long_enough() -> None:
    """A hundred folds are due, and it begins with the others."""
    long = read_written(LONG).conversation
    assert folds_possible(long) >= 100
    assert long.lines[:313] == read_written(NAMES[0]).conversation.lines
