"""Measures how long the store of turns takes, and how often it fails. It changes nothing else."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from compaction.model import CompactionState, Note, NoteId, Segment, Seq, SessionId, Turn
    from compaction.ports import Landing, StoredMemory, TurnStore


OPERATIONS = ("load", "append_turn", "turns", "add_note", "move_notes", "land", "close")


class OnOperation(Protocol):
    """Gets each operation of the store when it has ended."""

    def __call__(self, operation: str, seconds: float, *, failed: bool) -> None:
        """Take one operation: its name, how long it took, and whether it failed."""


class MeasuredTurnStore:
    """A `compaction.ports.TurnStore` on another one. See there for its methods."""

    def __init__(
        self, store: TurnStore, on_operation: OnOperation, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._on_operation = on_operation
        self._monotonic = monotonic

    async def load(self, session_id: SessionId) -> StoredMemory:
        with self._measured("load"):
            return await self._store.load(session_id)

    async def append_turn(self, session_id: SessionId, turn: Turn) -> Turn:
        with self._measured("append_turn"):
            return await self._store.append_turn(session_id, turn)

    async def turns(self, session_id: SessionId, start: Seq, end: Seq) -> Sequence[Turn]:
        with self._measured("turns"):
            return await self._store.turns(session_id, start, end)

    async def add_note(self, session_id: SessionId, note: Note) -> bool:
        with self._measured("add_note"):
            return await self._store.add_note(session_id, note)

    async def move_notes_to_pending(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        with self._measured("move_notes"):
            await self._store.move_notes_to_pending(session_id, note_ids)

    async def drop_notes(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        with self._measured("move_notes"):
            await self._store.drop_notes(session_id, note_ids)

    async def land(self, landing: Landing) -> bool:
        with self._measured("land"):
            return await self._store.land(landing)

    async def close(self, session_id: SessionId, segment: Segment | None, state: CompactionState) -> None:
        with self._measured("close"):
            await self._store.close(session_id, segment, state)

    @contextmanager
    def _measured(self, operation: str) -> Iterator[None]:
        begun_at = self._monotonic()
        failed = True
        try:
            yield
            failed = False
        finally:
            self._on_operation(operation, self._monotonic() - begun_at, failed=failed)
