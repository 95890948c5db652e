"""The conversations that were written for this project."""

from __future__ import annotations

from itertools import pairwise

import pytest

from benchmarks.memory.conversations.written import LONG, NAMES, read_written
from compaction.window import BATCH_SIZE, RECENT_WINDOW


@pytest.mark.parametrize("name", [*NAMES, LONG])
def test_labels_name_lines_of_the_conversation(name: str) -> None:
    """Facts are in the order of their lines, and time does not run backwards."""
    written = read_written(name)
    lines = written.lines
    assert all(0 <= fact.turn < len(lines) for fact in written.labels)
    assert max(written.chatter) < len(lines)
    assert all(one.at <= other.at for one, other in pairwise(lines))


def test_long_conversation_is_long_enough() -> None:
    """A hundred folds are due, and it begins with the others."""
    long = read_written(LONG)
    assert len(long.lines) >= 100 * BATCH_SIZE + RECENT_WINDOW
    assert long.lines[:313] == read_written(NAMES[0]).lines


def test_lasting_facts_have_questions() -> None:
    """At least fifty, so that their share means something; no question gives its answer's number away."""
    asked = [fact for name in NAMES for fact in read_written(name).labels if fact.question]
    assert len(asked) >= 50
    assert not any(char.isdigit() for fact in asked for char in fact.question)
