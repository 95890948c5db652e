"""A `TurnStore` in a mapping: a dict for the life of a process, a `shelve` or the like for longer.

Each turn is one value of the mapping, and all else of a session another one, so that a landing is one assignment. A
mapping that keeps its values elsewhere must be able to pickle them. It is called on the event loop, so be it quick.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from compaction.errors import StoreError
from compaction.model import CompactionState, Note, NoteId, Segment, Seq, SessionId, Turn
from compaction.ports import Landing, StoredMemory

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence


@dataclass(frozen=True, slots=True)
class _Kept:
    """All of a session but its turns. `notes`: in the order in which they were taken."""

    notes: tuple[Note, ...] = ()
    live: frozenset[NoteId] = frozenset()
    pending: frozenset[NoteId] = frozenset()
    segments: tuple[Segment, ...] = ()
    state: CompactionState = field(default_factory=CompactionState)
    ended: bool = False


class MappingStore:
    """The store in `values`. Keys begin with the session's id. One process at a time may use a session."""

    def __init__(self, values: MutableMapping[str, Any]) -> None:
        self._values = values

    async def load(self, session_id: SessionId) -> StoredMemory:
        """See `TurnStore`."""
        kept, total = self._kept(session_id), self._total(session_id)
        turns = self._turns(session_id, 0, total)
        spoke = dict.fromkeys((part.speaker_id, part.speaker) for turn in turns for part in turn.parts)
        shared = dict.fromkeys((note.person_id, note.who) for note in kept.notes if note.person_id is not None)
        return StoredMemory(
            total_turns=total,
            state=replace(kept.state, pending_notes=tuple(each for each in kept.notes if each.id in kept.pending)),
            window=tuple(turn for turn in turns if turn.seq >= kept.state.cursor),
            segments=tuple(sorted(kept.segments, key=lambda each: each.start)),
            live_notes=tuple(each for each in kept.notes if each.id in kept.live),
            ended=kept.ended,
            speakers=tuple(spoke | shared),
        )

    async def append_turn(self, session_id: SessionId, turn: Turn) -> Turn:
        """See `TurnStore`."""
        total, key = self._total(session_id), _key(session_id, turn.seq)
        # A turn beyond the total was written just before a process ended, and nobody was told that it is stored.
        if turn.seq < total and self._read(key, turn) != turn:
            raise StoreError(
                "Turn {seq} of session {session_id} is already stored with other content. Two "
                "processes seem to write the same session. Stop one of them.",
                seq=turn.seq,
                session_id=session_id,
            )
        self._write(key, turn)
        self._write(_key(session_id, "total"), max(total, turn.seq + 1))
        return turn

    async def turns(self, session_id: SessionId, start: Seq, end: Seq) -> Sequence[Turn]:
        """See `TurnStore`."""
        return self._turns(session_id, start, min(end, self._total(session_id)))

    async def add_note(self, session_id: SessionId, note: Note) -> bool:
        """See `TurnStore`."""
        kept = self._kept(session_id)
        if all(each.id != note.id for each in kept.notes):
            self._keep(session_id, replace(kept, notes=(*kept.notes, note), live=kept.live | {note.id}))
        return True

    async def move_notes_to_pending(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """See `TurnStore`."""
        kept = self._kept(session_id)
        moved = kept.live.intersection(note_ids)
        self._keep(session_id, replace(kept, live=kept.live - moved, pending=kept.pending | moved))

    async def drop_notes(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """See `TurnStore`."""
        kept = self._kept(session_id)
        self._keep(session_id, replace(kept, pending=kept.pending.difference(note_ids)))

    async def land(self, landing: Landing) -> bool:
        """See `TurnStore`."""
        kept, segment = self._kept(landing.session_id), landing.segment
        expected = (landing.expected_cursor, landing.expected_revision)
        ranges = {(each.start, each.end) for each in kept.segments if each.start < each.end}
        is_stale = expected != (kept.state.cursor, kept.state.revision)
        if kept.ended or is_stale or (segment.start, segment.end) in ranges:
            return False
        landed = replace(
            kept,
            segments=(*kept.segments, segment),
            state=replace(landing.state, pending_notes=()),
            pending=kept.pending.difference(segment.note_ids),
        )
        self._keep(landing.session_id, landed)
        return True

    async def close(self, session_id: SessionId, segment: Segment | None, state: CompactionState) -> None:
        """See `TurnStore`."""
        kept = self._kept(session_id)
        if kept.ended:
            return
        if (state.cursor, state.revision) != (kept.state.cursor, kept.state.revision):
            raise StoreError("The store has a newer version of this session. I go on with that one.")
        closing = () if segment is None else (segment,)
        self._keep(session_id, replace(kept, segments=(*kept.segments, *closing), ended=True))

    def _turns(self, session_id: SessionId, start: int, end: int) -> tuple[Turn, ...]:
        stored = (self._read(_key(session_id, seq), None) for seq in range(start, end))
        return tuple(turn for turn in stored if turn is not None)

    def _total(self, session_id: SessionId) -> int:
        return int(self._read(_key(session_id, "total"), 0))

    def _kept(self, session_id: SessionId) -> _Kept:
        kept: _Kept = self._read(_key(session_id, "kept"), _Kept())
        return kept

    def _keep(self, session_id: SessionId, kept: _Kept) -> None:
        self._write(_key(session_id, "kept"), kept)

    def _read(self, key: str, default: Any) -> Any:
        try:
            return self._values.get(key, default)
        except Exception as exc:
            raise _failed(exc) from exc

    def _write(self, key: str, value: object) -> None:
        try:
            self._values[key] = value
        except Exception as exc:
            raise _failed(exc) from exc


def _failed(exc: Exception) -> StoreError:
    return StoreError("The storage of this session failed ({error}).", error=type(exc).__name__)


def _key(session_id: SessionId, name: object) -> str:
    return f"{session_id}/{name}"
