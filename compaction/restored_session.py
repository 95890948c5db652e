"""Reads a session from the store and makes of it what a session continues from. A new session has nothing stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.errors import SessionEndedError
from compaction.log_events import MemoryEvent
from compaction.notes import NoteBuffer
from compaction.speaker_names import SpeakerNames
from compaction.store_queue import StoreQueue
from compaction.turn_buffer import TurnBuffer
from compaction.withheld import WithheldPeople

if TYPE_CHECKING:
    import structlog

    from compaction.model import CompactionState, Segment, SessionId
    from compaction.ports import TurnStore


@dataclass(frozen=True, slots=True)
class RestoredSession:
    """The parts of one session that hold what is stored of it. Each has one owner from now on, the session."""

    buffer: TurnBuffer
    store_queue: StoreQueue
    state: CompactionState
    notes: NoteBuffer
    segments: tuple[Segment, ...]
    names: SpeakerNames
    withheld: WithheldPeople


async def restore_session(
    session_id: SessionId, store: TurnStore, *, timeout_s: float, log: structlog.typing.FilteringBoundLogger
) -> RestoredSession:
    """Return the parts of a new or stored session. `timeout_s`: the most seconds for one call of the store.

    Raises StoreError if the stored session can't be read, and SessionEndedError if the session has ended. Turns that
    the store has lost are logged and left out.
    """
    store_queue = StoreQueue(store, session_id, timeout_s=timeout_s)
    stored = await store_queue.load()
    if stored.ended:
        raise SessionEndedError(f"Session {session_id} has ended; open a new one.")
    store_queue.stored_turns = stored.total_turns
    buffer, missing = TurnBuffer.restored(stored.window, first=stored.state.cursor, total=stored.total_turns)
    if missing:
        log.error(MemoryEvent.TURNS_MISSING, first_seq=missing[0], count=len(missing))
    return RestoredSession(
        buffer,
        store_queue,
        stored.state,
        NoteBuffer(live=stored.live_notes, pending=stored.state.pending_notes),
        stored.segments,
        SpeakerNames(stored.speakers),
        WithheldPeople(stored.speakers, stored.quotable),
    )
