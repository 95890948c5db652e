"""What a session continues from when it is opened."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import structlog
from structlog.testing import capture_logs

from compaction.errors import SessionEndedError
from compaction.model import Seq, TurnPart
from compaction.restored_session import RestoredSession, restore_session
from tests.compaction.rooms import EVENING
from tests.compaction.turn_store_contract import turn
from tests.fakes.turn_store import InMemoryTurnStore


def _restored(store: InMemoryTurnStore) -> RestoredSession:
    return asyncio.run(restore_session(EVENING, store, timeout_s=5.0, log=structlog.get_logger()))


def _store_of(*seqs: int) -> InMemoryTurnStore:
    store = InMemoryTurnStore()
    for seq in seqs:
        said = replace(turn(seq), parts=(TurnPart("1", "Mira", f"This is turn {seq}."),))
        asyncio.run(store.append_turn(EVENING, said))
    return store


def test_a_new_session_starts_empty() -> None:
    """Nothing is stored of a new session: no turns, no segments, and its first turn is turn 0."""
    restored = _restored(InMemoryTurnStore())
    assert (restored.timeline.total, restored.outbox.stored_turns, restored.view.ledger.segments) == (0, 0, ())
    assert restored.state.memory.cursor == 0


def test_the_stored_turns_and_names_come_back() -> None:
    """The turns that are not folded are in memory again, and who spoke keeps their name."""
    restored = _restored(_store_of(0, 1, 2))
    assert [each.seq for each in restored.timeline.since(Seq(0))] == [0, 1, 2]
    assert (restored.timeline.total, restored.outbox.stored_turns) == (3, 3)
    assert restored.names.name_of("2", "Mira") != "Mira"


def test_a_session_that_has_ended_is_refused() -> None:
    store = _store_of(0)
    asyncio.run(store.close(EVENING, None, _restored(store).state.compaction))
    with pytest.raises(SessionEndedError):
        _restored(store)


def test_turns_that_the_store_has_lost_are_logged() -> None:
    """A gap in the stored turns does not keep the session from being opened."""
    store = _store_of(0, 1, 2)
    with capture_logs() as logs:
        restored = _restored(store)
    assert (logs, restored.timeline.total) == ([], 3)
    store.lose(EVENING, Seq(1))
    with capture_logs() as logs:
        restored = _restored(store)
    assert [(each["event"], each["first_seq"], each["count"]) for each in logs] == [("stored_turns_missing", 1, 1)]
    assert restored.timeline.total == 3
