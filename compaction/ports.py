"""The ports of this package: a store for turns, a text model, an embedder. `bot` implements them.

Every implementation passes the contract tests in `tests/compaction/` (see `turn_store_contract.py`), as the in-memory
fake does. The port of the search index is in `memory.passage`, that of summarisers in `summary.port`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.model import Chapter, CompactionState, Note, NoteId, Segment, Seq, SessionId, Turn


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A stored session: all that `SessionMemory.open` needs to go on where the last process stopped."""

    total_turns: int
    state: CompactionState
    window: tuple[Turn, ...]  # every turn from the cursor on, in order
    segments: tuple[Segment, ...]  # ordered by `start`, then by landing
    live_notes: tuple[Note, ...]  # oldest first
    ended: bool
    chapters: tuple[Chapter, ...] = ()  # ordered by `start`, then by `level`


@dataclass(frozen=True, slots=True)
class Landing:
    """What one successful run writes, in one transaction or not at all.

    The store applies it only if the session has not ended and its stored (cursor, revision) equal `expected_cursor`
    and `expected_revision`. It then stores `segment` and `state`, and marks `folded_note_ids` as folded; folded notes
    stay searchable. `state.pending_notes` is not read: `move_notes_to_pending` and `folded_note_ids` alone decide
    which notes are pending.

    `repairs`: `segment` replaces the degraded one with its id and range. The cursor stays, the revision moves, and no
    note is folded. `chapter`: is stored instead of a segment; the cursor stays, the revision moves.
    """

    session_id: SessionId
    expected_cursor: Seq
    expected_revision: int
    segment: Segment | None
    state: CompactionState
    folded_note_ids: tuple[NoteId, ...]
    repairs: bool = False
    chapter: Chapter | None = None


class TurnStore(Protocol):
    """Where turns, notes, segments and the compaction state live. Raises `StoreError` on any failure."""

    async def load(self, session_id: SessionId) -> StoredMemory:
        """Return everything a restart needs. An unknown session is returned as an empty one."""

    async def append_turn(self, session_id: SessionId, turn: Turn) -> None:
        """Store one turn. Storing the same turn again changes nothing. Raises StoreError if another turn with its
        number is stored."""

    async def turns(self, session_id: SessionId, start: Seq, end: Seq) -> Sequence[Turn]:
        """Return the stored turns with `start <= seq < end`, in order, without those that are not stored."""

    async def add_note(self, session_id: SessionId, note: Note) -> None:
        """Store one live note. If a note with its id is stored already, live or not, nothing changes."""

    async def move_notes_to_pending(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """Make live notes pending. Pending notes stay in the order in which they were added."""

    async def land(self, landing: Landing) -> bool:
        """Apply one landing atomically, and return whether it was applied.

        Refused, with nothing changed, if (cursor, revision) moved on, the session has ended, or a segment with this
        range is stored already (the idempotency key is (session, start, end), except for empty ranges). A repair is
        refused if no degraded segment with its id and range is stored: it was repaired, pruned or deleted meanwhile.
        """

    async def close(self, session_id: SessionId, segment: Segment | None, state: CompactionState) -> None:
        """Store the closing segment and mark the session as ended; the cursor stays. A repetition changes nothing.

        Raises StoreError if the stored (cursor, revision) are not those of `state`.
        """


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One call to a text model. `schema`: ask for JSON of this shape, where the endpoint supports it."""

    system: str
    prompt: str
    max_output_tokens: int
    schema: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class CompletionAnswer:
    """The answer of a text model. Token counts are None if the endpoint does not report them."""

    text: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


class Completion(Protocol):
    """A text model that gives one whole answer. Raises nothing but `CompletionError`."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return the answer. The caller sets the deadline (asyncio.timeout)."""


class Embedder(Protocol):
    """Turns texts into vectors of one fixed width. Raises nothing but `EmbeddingError`."""

    @property
    def model(self) -> str:
        """Return the name of the model; vectors of different models can't be compared."""

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector per text, in order. `urgent`: somebody waits, so this call goes before others.

        The caller sets the deadline (asyncio.timeout).
        """
