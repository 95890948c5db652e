"""The store in a dict with planned faults: an operation fails, is done but its answer is lost, or never ends.

Without faults it passes the same contract tests as the database adapter (`tests/compaction/turn_store_contract.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from typing import Any, TypeVar

from compaction.errors import StoreError
from compaction.mapping_store import MappingStore
from compaction.model import CompactionState, Note, NoteId, Segment, Seq, SessionId, Turn
from compaction.ports import Landing, StoredMemory

_T = TypeVar("_T")


class StoreFault(Enum):
    """How one operation fails."""

    REFUSED = "nothing is written, and the caller hears of it"
    ANSWER_LOST = "everything is written, and the caller hears of a failure"
    HANGS = "nothing is written, and no answer ever comes"


class InMemoryTurnStore(MappingStore):
    """Before each operation the store calls `fault` with the operation's name and carries out the returned
    `StoreFault`, if there is one.
    """

    def __init__(self, *, fault: Callable[[str], StoreFault | None] | None = None) -> None:
        self.fault = fault
        self.operations: list[str] = []
        self.values: dict[str, Any] = {}
        super().__init__(self.values)

    async def load(self, session_id: SessionId) -> StoredMemory:
        return await self._done("load", super().load(session_id))

    async def append_turn(self, session_id: SessionId, turn: Turn) -> Turn:
        return await self._done("append_turn", super().append_turn(session_id, turn))

    async def turns(self, session_id: SessionId, start: Seq, end: Seq) -> Sequence[Turn]:
        return await self._done("turns", super().turns(session_id, start, end))

    async def add_note(self, session_id: SessionId, note: Note) -> bool:
        return await self._done("add_note", super().add_note(session_id, note))

    async def move_notes_to_pending(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        await self._done("move_notes_to_pending", super().move_notes_to_pending(session_id, note_ids))

    async def drop_notes(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        await self._done("drop_notes", super().drop_notes(session_id, note_ids))

    async def land(self, landing: Landing) -> bool:
        return await self._done("land", super().land(landing))

    async def close(self, session_id: SessionId, segment: Segment | None, state: CompactionState) -> None:
        await self._done("close", super().close(session_id, segment, state))

    def lose(self, session_id: SessionId, seq: Seq) -> None:
        """Delete one turn, as if the file were damaged."""
        del self.values[f"{session_id}/{seq}"]

    async def _done(self, operation: str, work: Coroutine[Any, Any, _T]) -> _T:
        self.operations.append(operation)
        try:
            # A real store always yields to the event loop here. The fake does so too, so that tasks interleave in the
            # same way.
            await asyncio.sleep(0)
            fault = None if self.fault is None else self.fault(operation)
            if fault is StoreFault.REFUSED:
                raise StoreError("The disk is full.")
            if fault is StoreFault.HANGS:
                await asyncio.get_running_loop().create_future()
            answer = await work
        finally:
            work.close()
        if fault is StoreFault.ANSWER_LOST:
            raise StoreError("The connection broke before the answer came.")
        return answer
