"""The queue of writes from a session to its store. Writes happen in order and are repeated until the store accepts
them.

Turns and notes are queued when they arrive and written at once. If the store fails, they stay queued, and the next
write starts with them. A full disk therefore only delays the writes: nothing is lost while the process runs.

A conversation waits for each of its turns to be stored. After a store has failed slowly, it does not wait for it again
for a while: each turn, and each answer, would come later than the one before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar, assert_never

from compaction.errors import StoreError
from compaction.model import CompactionState, Note, NoteId, Segment, Seq, SessionId, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from compaction.notes import NoteBuffer
    from compaction.ports import Landing, StoredMemory, TurnStore

_T = TypeVar("_T")

# How long one call of the store may take.
TIMEOUT_S = 10.0
# Who waited for a failure so long was kept waiting. A store that refuses at once may take the next turn.
_SLOW_S = 1.0
# Longer than an owner lets pass between two calls of `flush` with the time that each may take, so that only the first
# failure is waited for.
LEFT_ALONE_S = 30.0


@dataclass(frozen=True, slots=True)
class DroppedNotes:
    """The ids of pending notes that wait for no fold any more."""

    note_ids: tuple[NoteId, ...]


# A turn, a live note, the ids of notes that are pending now, or those of notes that are not any more.
_Item: TypeAlias = "Turn | Note | tuple[NoteId, ...] | DroppedNotes"


class StoreQueue:
    """Makes all store calls of one session: one write at a time, each with a timeout.

    If the answer to a write is lost, the write is repeated. This is safe because the store's operations are idempotent
    (`ports.TurnStore`). Owned by one session; several tasks of one event loop may use it.

    Somebody may be forgotten while a turn or a note waits. `on_turn_changed` gets a turn as it is stored then, and
    `on_note_left_out` the id of a note that is not stored.
    """

    def __init__(self, store: TurnStore, session_id: SessionId) -> None:
        self._store = store
        self._session_id = session_id
        self._waiting: deque[_Item] = deque()
        # Turns with `seq < stored_turns` are stored, as far as this queue knows.
        self.stored_turns = 0
        self._lock = asyncio.Lock()
        self.on_turn_changed: Callable[[Turn], object] = _ignore
        self.on_note_left_out: Callable[[NoteId], object] = _ignore
        # Makes the last slow failure anew, and until when nobody waits for the store (seconds of the event loop).
        self._slow_failure: Callable[[], StoreError] | None = None
        self._left_alone_until = float("-inf")

    @property
    def waiting(self) -> int:
        """Return how many items wait to be written."""
        return len(self._waiting)

    def put(self, item: _Item) -> None:
        """Queue a turn, a live note, the change of live notes with these ids to pending ones, or notes to drop; `flush`
        writes it.
        """
        self._waiting.append(item)

    def withdraw_replies(self) -> None:
        """Take the words out of the replies that wait: they were made of what somebody else has changed since."""
        self._waiting = deque(
            each.without_words() if isinstance(each, Turn) and each.kind is TurnKind.ASSISTANT else each
            for each in self._waiting
        )

    async def flush(self) -> None:
        """Write everything that is queued, oldest first. Raises StoreError; unwritten items stay queued."""
        async with self._lock:
            await self._flush()

    async def flush_promptly(self) -> None:
        """As `flush`, but while the store is left alone, because it has failed slowly, raise its last error at once."""
        self._refuse_while_left_alone()
        async with self._lock:
            # Another write may have failed slowly meanwhile.
            self._refuse_while_left_alone()
            await self._flush()

    async def land(self, landing: Landing) -> bool:
        """Write the queued items and then the landing, with nothing in between. Returns whether the store applied the
        landing.

        The order matters: a note that is stored after the landing that folds it would stay pending for ever. Raises
        StoreError. In that case the landing may or may not be stored, and the next landing shows which.
        """
        async with self._lock:
            await self._flush()
            return await self._written(self._store.land(landing))

    async def close(self, segment: Segment | None, state: CompactionState) -> None:
        """Write the queued items, then the end of the session. Raises StoreError."""
        async with self._lock:
            await self._flush()
            await self._written(self._store.close(self._session_id, segment, state))

    async def load(self, *, since: Seq | None = None) -> StoredMemory:
        """Write the queued items, then return the stored session. No landing is written in between. Raises StoreError.

        `since`: the returned window begins at this turn if the turn is before the cursor.
        """
        async with self._lock:
            await self._flush()
            stored = await self._in_time(self._store.load(self._session_id))
            if since is None or since >= stored.state.cursor:
                return stored
            folded = await self._in_time(self._store.turns(self._session_id, since, stored.state.cursor))
            return replace(stored, window=(*folded, *stored.window))

    async def reload(self, known: NoteBuffer, *, since: Seq) -> tuple[StoredMemory, frozenset[NoteId]]:
        """Return what `load` returns, and the ids of `known` notes that the store has deleted or folded.

        Notes that arrive during the read are not among these. Raises StoreError.
        """
        stored = await self.load(since=since)
        kept = {note.id for note in (*stored.live_notes, *stored.state.pending_notes)}
        return stored, frozenset(note.id for note in (*known.live, *known.pending)) - kept

    async def _flush(self) -> None:
        while self._waiting:
            item = self._waiting[0]
            match item:
                case Turn():
                    stored = await self._written(self._store.append_turn(self._session_id, item))
                    self.stored_turns = item.seq + 1
                    if stored != item:
                        self.on_turn_changed(stored)
                case Note():
                    if not await self._written(self._store.add_note(self._session_id, item)):
                        self.on_note_left_out(item.id)
                case tuple():
                    await self._written(self._store.move_notes_to_pending(self._session_id, item))
                case DroppedNotes(note_ids):
                    await self._written(self._store.drop_notes(self._session_id, note_ids))
                case _:
                    assert_never(item)
            self._waiting.popleft()

    def _refuse_while_left_alone(self) -> None:
        if self._slow_failure is not None and asyncio.get_running_loop().time() < self._left_alone_until:
            raise self._slow_failure()

    async def _written(self, write: Awaitable[_T]) -> _T:
        """Return the answer to a write, and note whether the store takes writes in time."""
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        try:
            answer = await self._in_time(write)
        except StoreError as error:
            if loop.time() - began_at >= _SLOW_S:
                self._slow_failure = partial(StoreError, error.template, **error.values)
                self._left_alone_until = loop.time() + LEFT_ALONE_S
            raise
        self._slow_failure = None
        return answer

    async def _in_time(self, write: Awaitable[_T]) -> _T:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await write
        except TimeoutError as exc:
            raise StoreError("The store did not answer within {seconds:g} seconds.", seconds=TIMEOUT_S) from exc


def _ignore(_changed: Turn | NoteId) -> None:
    """For a queue that only reads."""
