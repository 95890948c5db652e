"""A `TurnStore` in memory with planned faults: an operation fails, is done but its answer is lost, or never ends.

It passes the same contract tests as the database adapter (`tests/compaction/turn_store_contract.py`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from compaction.errors import StoreError
from compaction.model import CompactionState
from compaction.ports import StoredMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compaction.model import Note, NoteId, Segment, Seq, SessionId, Turn
    from compaction.ports import Landing


class StoreFault(Enum):
    """How one operation fails."""

    REFUSED = "nothing is written, and the caller hears of it"
    ANSWER_LOST = "everything is written, and the caller hears of a failure"
    HANGS = "nothing is written, and no answer ever comes"


@dataclass
class _Session:
    turns: dict[int, Turn] = field(default_factory=dict)
    # The order of this dict is the order in which the notes were taken.
    notes: dict[NoteId, Note] = field(default_factory=dict)
    live: set[NoteId] = field(default_factory=set)
    pending: set[NoteId] = field(default_factory=set)
    segments: list[Segment] = field(default_factory=list)
    state: CompactionState = field(default_factory=CompactionState)
    ended: bool = False


class InMemoryTurnStore:
    """Keeps sessions in dictionaries. Before each operation the store calls `fault` with the operation's name and
    carries out the returned `StoreFault`, if there is one.
    """

    def __init__(self, *, fault: Callable[[str], StoreFault | None] | None = None) -> None:
        self.fault = fault
        self.operations: list[str] = []
        self._sessions: dict[SessionId, _Session] = {}

    async def load(self, session_id: SessionId) -> StoredMemory:
        """Return everything that a restart needs. An unknown session is returned as an empty one."""
        lost = await self._begin("load")
        session = self._sessions.get(session_id, _Session())
        _answer(lost)
        return StoredMemory(
            total_turns=max(session.turns, default=-1) + 1,
            state=replace(
                session.state,
                pending_notes=tuple(note for name, note in session.notes.items() if name in session.pending),
            ),
            window=tuple(session.turns[seq] for seq in sorted(session.turns) if seq >= session.state.cursor),
            segments=tuple(sorted(session.segments, key=lambda each: each.start)),
            live_notes=tuple(note for name, note in session.notes.items() if name in session.live),
            ended=session.ended,
            speakers=tuple(
                dict.fromkeys(
                    (part.speaker_id, part.speaker)
                    for seq in sorted(session.turns)
                    for part in session.turns[seq].parts
                )
                | dict.fromkeys(
                    (note.person_id, note.who) for note in session.notes.values() if note.person_id is not None
                )
            ),
        )

    async def append_turn(self, session_id: SessionId, turn: Turn) -> Turn:
        """Store one turn, unless it is stored already. Another turn under the same number is an error."""
        lost = await self._begin("append_turn")
        session = self._session(session_id)
        if session.turns.setdefault(turn.seq, turn) != turn:
            raise StoreError(f"Turn {turn.seq} is stored already with other words.")
        _answer(lost)
        return turn

    async def turns(self, session_id: SessionId, start: Seq, end: Seq) -> Sequence[Turn]:
        """Return the stored turns with `start <= seq < end`, in order."""
        lost = await self._begin("turns")
        session = self._sessions.get(session_id, _Session())
        _answer(lost)
        return tuple(session.turns[seq] for seq in range(start, end) if seq in session.turns)

    async def add_note(self, session_id: SessionId, note: Note) -> bool:
        """Store one live note, unless it is stored already."""
        lost = await self._begin("add_note")
        session = self._session(session_id)
        if note.id not in session.notes:
            session.notes[note.id] = note
            session.live.add(note.id)
        _answer(lost)
        return True

    async def move_notes_to_pending(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """Make live notes pending."""
        lost = await self._begin("move_notes_to_pending")
        session = self._session(session_id)
        moved = session.live.intersection(note_ids)
        session.live -= moved
        session.pending |= moved
        _answer(lost)

    async def drop_notes(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """Let pending notes wait no more."""
        lost = await self._begin("drop_notes")
        self._session(session_id).pending -= set(note_ids)
        _answer(lost)

    async def land(self, landing: Landing) -> bool:
        """Apply one landing and return True, or change nothing and return False."""
        lost = await self._begin("land")
        session = self._session(landing.session_id)
        segment = landing.segment
        expected = (landing.expected_cursor, landing.expected_revision)
        if session.ended or expected != (session.state.cursor, session.state.revision):
            return False
        if segment.start < segment.end and any(
            (each.start, each.end) == (segment.start, segment.end) for each in session.segments
        ):
            return False
        session.segments.append(segment)
        session.state = replace(landing.state, pending_notes=())
        session.pending -= set(landing.segment.note_ids)
        _answer(lost)
        return True

    async def close(self, session_id: SessionId, segment: Segment | None, state: CompactionState) -> None:
        """Store the closing segment and mark the session ended."""
        lost = await self._begin("close")
        session = self._session(session_id)
        if not session.ended:
            if (state.cursor, state.revision) != (session.state.cursor, session.state.revision):
                raise StoreError(f"Session {session_id} moved on to revision {session.state.revision}.")
            if segment is not None:
                session.segments.append(segment)
            session.ended = True
        _answer(lost)

    def lose(self, session_id: SessionId, seq: Seq) -> None:
        """Delete one turn, as if the file were damaged."""
        del self._sessions[session_id].turns[seq]

    def _session(self, session_id: SessionId) -> _Session:
        return self._sessions.setdefault(session_id, _Session())

    async def _begin(self, operation: str) -> bool:
        self.operations.append(operation)
        # A real store always yields to the event loop here. The fake does so too, so that tasks interleave in the same
        # way.
        await asyncio.sleep(0)
        match self.fault(operation) if self.fault is not None else None:
            case StoreFault.REFUSED:
                raise StoreError("The disk is full.")
            case StoreFault.HANGS:
                await asyncio.get_running_loop().create_future()
                return False
            case StoreFault.ANSWER_LOST:
                return True
            case None:
                return False


def _answer(lost: bool) -> None:
    if lost:
        raise StoreError("The connection broke before the answer came.")
