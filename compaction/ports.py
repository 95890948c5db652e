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
    segments: tuple[Segment, ...]  # in order of `start`
    live_notes: tuple[Note, ...]  # oldest first
    ended: bool


@dataclass(frozen=True, slots=True)
class Landing:
    """One successful run, written as one transaction or not at all.

    The store applies it only if the session's stored (cursor, revision) equal `expected_cursor` and
    `expected_revision`, and then stores `segment` (None for a notes-only run), the new `state`, and drops
    `folded_note_ids` from the pending notes (they stay searchable).
    """

    session_id: SessionId
    expected_cursor: Seq
    expected_revision: int
    segment: Segment | None
    state: CompactionState
    folded_note_ids: tuple[NoteId, ...]


class TurnStore(Protocol):
    """Where turns, notes, segments and the compaction state live. Raises `StoreError` on any failure."""

    async def load(self, session_id: SessionId) -> StoredMemory:
        """Return everything a restart needs; an unknown session is an empty one."""

    async def append_turn(self, session_id: SessionId, turn: Turn) -> None:
        """Store one turn. Storing the same (session, seq) again with the same content changes nothing."""

    async def turns(self, session_id: SessionId, start: Seq, end: Seq) -> Sequence[Turn]:
        """Return the stored turns with `start <= seq < end`, in order; absent ones are simply missing."""

    async def add_note(self, session_id: SessionId, note: Note) -> None:
        """Store one live note."""

    async def move_notes_to_pending(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """Turn live notes into pending ones, keeping their order."""

    async def land(self, landing: Landing) -> bool:
        """Apply one landing atomically. Return False when (cursor, revision) moved on or the range of the
        segment is stored already (the idempotency key is (session, start, end)); nothing changes then."""

    async def close(self, session_id: SessionId, segment: Segment | None, state: CompactionState) -> None:
        """Store the closing segment (cursor unmoved) and the final state, and mark the session ended."""


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
    """Turns texts into vectors of one fixed width."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one unit vector a text, in order."""
