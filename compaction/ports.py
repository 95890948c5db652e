"""What the room's memory asks of the outside: a store for turns, a text model, an embedder.

The side that needs a port owns it; `bot` implements these. An implementation passes the contract tests in
`tests/compaction/` (see `turn_store_contract.py`) like the in-memory fake there does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.model import CompactionState, Note, NoteId, Segment, Seq, SessionId, Turn


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A session as the store remembers it: what `open` needs to go on where the last process stopped."""

    total_turns: int
    state: CompactionState
    window: tuple[Turn, ...]  # every turn from the cursor on, in order
    segments: tuple[Segment, ...]  # in order of `start`; of equal starts, in the order in which they landed
    live_notes: tuple[Note, ...]  # oldest first
    ended: bool


@dataclass(frozen=True, slots=True)
class Landing:
    """One successful run, written as one transaction or not at all.

    The store applies it only if the session's stored (cursor, revision) equal `expected_cursor` and
    `expected_revision` and the session has not ended, and then stores `segment`, the new `state`, and drops
    `folded_note_ids` from the pending notes (they stay searchable). `state.pending_notes` is not read: which
    notes are pending follows from `move_notes_to_pending` and `folded_note_ids` alone.

    `repairs`: the segment takes the place of the degraded one of its id and range, which was made without the model;
    the cursor stays, the revision moves, and no note is folded.
    """

    session_id: SessionId
    expected_cursor: Seq
    expected_revision: int
    segment: Segment | None
    state: CompactionState
    folded_note_ids: tuple[NoteId, ...]
    repairs: bool = False


class TurnStore(Protocol):
    """Where turns, notes, segments and the compaction state live. Raises `StoreError` on any failure."""

    async def load(self, session_id: SessionId) -> StoredMemory:
        """Return everything a restart needs; an unknown session is an empty one."""

    async def append_turn(self, session_id: SessionId, turn: Turn) -> None:
        """Store one turn. Storing the same (session, seq) again with the same content changes nothing; with
        other content it is a StoreError, and the first stays."""

    async def turns(self, session_id: SessionId, start: Seq, end: Seq) -> Sequence[Turn]:
        """Return the stored turns with `start <= seq < end`, in order; absent ones are simply missing."""

    async def add_note(self, session_id: SessionId, note: Note) -> None:
        """Store one live note. A note of that id that is stored already, in whatever place, stays as it is."""

    async def move_notes_to_pending(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """Turn live notes into pending ones; pending notes are in the order in which notes were added."""

    async def land(self, landing: Landing) -> bool:
        """Apply one landing atomically. Return False when (cursor, revision) moved on, the session has ended,
        or the range of the segment is stored already (the idempotency key is (session, start, end), empty
        ranges aside); nothing changes then. A landing that repairs is refused when no degraded segment of its id
        and range is stored (it was repaired, pruned or deleted meanwhile)."""

    async def close(self, session_id: SessionId, segment: Segment | None, state: CompactionState) -> None:
        """Store the closing segment (cursor unmoved) and mark the session ended; once more changes nothing.
        Raises StoreError when the stored (cursor, revision) are not those of `state`."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One call to a text model. `schema` asks for JSON of that shape where the endpoint can."""

    system: str
    prompt: str
    max_output_tokens: int
    schema: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class CompletionAnswer:
    """What a text model said, and what it cost. Token counts are None where the endpoint does not tell."""

    text: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


class Completion(Protocol):
    """A text model asked for one whole answer. Raises `CompletionError` (retryable or not), nothing else."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return the answer. The caller sets the deadline (asyncio.timeout)."""


class Embedder(Protocol):
    """Turns texts into vectors of one fixed width. Raises `EmbeddingError` (retryable or not), nothing else."""

    @property
    def model(self) -> str:
        """Return what the vectors are of: those of another model can't be compared with them."""

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector a text, in order. `urgent`: somebody waits, so it goes before what nobody waits
        for. The caller sets the deadline (asyncio.timeout)."""
