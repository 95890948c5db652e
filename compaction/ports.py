"""The ports (interfaces) of this package: a clock, a store for turns, a text model, an embedder. `bot` implements them.

Every implementation passes the contract tests in `tests/compaction/` (see `turn_store_contract.py`), and so does the
in-memory fake. The port of the search index is in `memory.passage`, and the port of summarisers in `summary.port`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.model import CompactionState, Note, NoteId, Segment, Seq, SessionId, Turn


class SessionClock(Protocol):
    """The clock that a session reads."""

    def now(self) -> float:
        """Return the current time in UTC epoch seconds."""

    def monotonic(self) -> float:
        """Return monotonic seconds."""


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A stored session: everything that `SessionTimeline.open` needs to continue where the last process stopped."""

    total_turns: int
    state: CompactionState
    window: tuple[Turn, ...]  # every turn from the cursor on, in order
    segments: tuple[Segment, ...]  # ordered by `start`, then by landing
    live_notes: tuple[Note, ...]  # oldest first
    ended: bool
    # Id and name, as they first appeared in the turns, and then in notes of their screens.
    speakers: tuple[tuple[str, str], ...] = ()
    # Ids of people who spoke or shared a screen in other sessions, and may be quoted in this one.
    quotable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Landing:
    """What one successful run writes. The store writes all of it in one transaction, or nothing.

    The store applies a landing only if the session has not ended and its stored (cursor, revision) equal
    `expected_cursor` and `expected_revision`. It then stores `segment` and `state`, and marks the notes of the segment
    as folded. Folded notes stay searchable. `state.pending_notes` is ignored.
    """

    session_id: SessionId
    expected_cursor: Seq
    expected_revision: int
    segment: Segment
    state: CompactionState


class TurnStore(Protocol):
    """Stores turns, notes, segments and the compaction state. Raises `StoreError` on any failure.

    The store of one owner raises `StaleOwnerError` from every write once somebody else owns the session.
    """

    async def load(self, session_id: SessionId) -> StoredMemory:
        """Return everything that is needed to continue a session. An unknown session is returned as an empty one."""

    async def append_turn(self, session_id: SessionId, turn: Turn) -> Turn:
        """Store one turn, and return it as it is stored: without what was forgotten since. The session goes on with it.

        Storing the same turn again changes nothing. Raises StoreError if a different turn with the same number is
        stored.
        """

    async def turns(self, session_id: SessionId, start: Seq, end: Seq) -> Sequence[Turn]:
        """Return the stored turns with `start <= seq < end`, in order. Turns that are not stored are left out."""

    async def add_note(self, session_id: SessionId, note: Note) -> bool:
        """Store one live note. If a note with the same id is already stored, live or not, nothing changes.

        Returns False if it is left out, because whoever showed it was forgotten since. The session then drops it.
        """

    async def move_notes_to_pending(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """Make live notes pending. Pending notes keep the order in which they were added."""

    async def drop_notes(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """Make pending notes wait for no fold any more. They stay searchable."""

    async def land(self, landing: Landing) -> bool:
        """Apply one landing atomically and return whether it was applied.

        A landing is refused, and nothing changes, if (cursor, revision) differ from what it expects, if the session has
        ended, or if a segment with this range is already stored (the idempotency key is (session, start, end), except
        for empty ranges).
        """

    async def close(self, session_id: SessionId, segment: Segment | None, state: CompactionState) -> None:
        """Store the closing segment and mark the session as ended. The cursor stays. Closing again changes nothing.

        Raises StoreError if the stored (cursor, revision) differ from those of `state`.
        """


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One call to a text model. `schema`: ask for JSON of this shape, if the endpoint supports it."""

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
    """A text model that returns a complete answer. Raises only `CompletionError`."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return the answer. The caller sets the deadline (asyncio.timeout)."""


class Embedder(Protocol):
    """Turns texts into vectors of one fixed width. Raises only `EmbeddingError`."""

    @property
    def model(self) -> str:
        """Return the name of the model. Vectors of different models can't be compared."""

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector per text, in order. `urgent`: a person is waiting, so this call goes before others.

        The caller sets the deadline (asyncio.timeout).
        """


# How a text is like a query: for each piece of a word of the query, the cosine of the text's most similar piece.
WordLikeness: TypeAlias = "Sequence[float]"


@runtime_checkable
class WordComparer(Embedder, Protocol):
    """An embedder that compares a query's words one by one, too. Raises only `EmbeddingError`."""

    async def compare_words(self, query: str, texts: Sequence[str]) -> Sequence[WordLikeness]:
        """Return the likeness of each text. The caller sets the deadline (asyncio.timeout)."""
