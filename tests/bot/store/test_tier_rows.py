"""A segment's record is stored in columns and read back, and later counts of retrievals replace its first values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bot.store.rows import UnreadableRowError, record_values, tier_from_row
from compaction.memory.segment_record import make_record
from tests.compaction.segments import batch, fact

SEGMENT = batch(1, fact(12, "We decided to keep notes.md in the shed."), fact(14, "The build failed with an error."))


def row(**changes: object) -> Any:
    """Return a database row of a segment that is not compressed yet."""
    empty = dict.fromkeys(
        ("queued_at_turn", "queued_at", "compressed_at_turn", "compressed_at", "archived_at", "pruned_at")
    )
    values = {"message_count": 9, "last_mention": 31, "access_count": 0, "last_accessed": None, "relevance_score": None}
    return SimpleNamespace(**(empty | values | changes))


def test_record_survives_its_columns() -> None:
    """A record is the same after it was written to columns and read back."""
    record = make_record(SEGMENT, superseded=frozenset(), task_completed=True, at=50.0)
    written = record_values(record) | {"compressed_at_turn": 40, "relevance_score": record.relevance_score}
    tier = tier_from_row(SEGMENT, row(**written), {})
    assert tier.kept.record == record
    assert (tier.kept.compressed_at_turn, tier.known) == (40, True)
    assert tier_from_row(SEGMENT, row(), {}).kept.record is None


@pytest.mark.parametrize("column", ["key_decisions", "key_files"])
@pytest.mark.parametrize("stored", ["[", "null", "[1]", '{"a": 1}'])
def test_a_record_that_cannot_be_read_is_a_sentence(column: str, stored: str) -> None:
    """The error is one of the store, which upkeep reports and a command shows. It names the segment, and quotes nothing
    of it.
    """
    record = make_record(SEGMENT, superseded=frozenset(), task_completed=True, at=50.0)
    named = {"segment_id": SEGMENT.id, "session_id": SEGMENT.session_id, "compressed_at_turn": 40}
    damaged = row(**record_values(record) | named | {"relevance_score": 0.5, column: stored})
    with pytest.raises(UnreadableRowError, match=f"{SEGMENT.id}.*damaged"):
        tier_from_row(SEGMENT, damaged, {})
