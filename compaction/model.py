"""The values of the room's memory: turns, notes, facts, segments, and the state that ties them.

Everything here is immutable, uses the standard library alone, and says nothing about how it is stored or
summarised. Terms and invariants: docs/memory.md (glossary).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

SessionId = NewType("SessionId", str)
NoteId = NewType("NoteId", str)
RunId = NewType("RunId", str)
SegmentId = NewType("SegmentId", str)

# Absolute number of a turn in its session, from 0, never reused. Every cursor and range is made of these;
# a list index never is, because a bounded list would shift under it.
Seq = NewType("Seq", int)


class Mode(StrEnum):
    """How a session remembers what has left its recent window."""

    SUMMARY = "summary"
    ROLLING = "rolling"
    OFF = "off"


class Strategy(StrEnum):
    """What a fold makes of a batch."""

    LEDGER = "ledger"
    RECURSIVE = "recursive"


class TurnKind(StrEnum):
    """What sort of contribution a turn is."""

    SPEECH = "speech"
    MEMBERSHIP = "membership"
    EFFECT = "effect"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class TurnPart:
    """What one speaker contributed to a turn. `speaker_id` is stable; `speaker` is the display name then."""

    speaker_id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One immutable contribution. Times are UTC epoch seconds. `parts` is empty only in a tombstone."""

    seq: Seq
    kind: TurnKind
    started_at: float
    ended_at: float
    parts: tuple[TurnPart, ...]
    # A forgotten turn keeps its number and loses its words, so that no range has a hole.
    tombstone: bool = False


class NoteReason(StrEnum):
    """Why a note was taken."""

    SHARE_START = "share_start"
    CUT = "cut"
    TEXT = "text"
    INTERVAL = "interval"
    ASKED = "asked"


class NoteSource(StrEnum):
    """What read the screen."""

    OCR = "ocr"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Note:
    """One thing seen on a shared screen. `what` is at most 220 characters; `at` is UTC epoch seconds."""

    id: NoteId
    at: float
    who: str
    what: str
    why: NoteReason = NoteReason.TEXT
    source: NoteSource = NoteSource.OCR
    frame_hash: str = ""


class Slot(StrEnum):
    """The five things a summary keeps, in the order in which it says them."""

    PEOPLE = "people"
    ACTIVITY = "activity"
    THREAD = "thread"
    DECISION = "decision"
    BACKGROUND = "background"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing worth keeping, tied to the turn it was said in.

    `speaker` and `at` are taken from that turn, never from a model. `supersedes` names the (segment, index)
    pairs of facts this one replaces, written `segment_id#index`. A fact read from a screen names its note in
    `note_id`; `speaker` is then who shared, and `turn_seq` the first turn of its segment.
    """

    turn_seq: Seq
    slot: Slot
    speaker: str
    at: float
    text: str
    supersedes: tuple[str, ...] = ()
    note_id: NoteId | None = None

    @property
    def attributed_text(self) -> str:
        """Return the fact with who said it; what was on a screen says so itself."""
        return self.text if self.note_id is not None else f"{self.speaker}: {self.text}"


@dataclass(frozen=True, slots=True)
class Segment:
    """The stored record of one folded batch: turns `start <= seq < end`. Times are UTC epoch seconds.

    The range is empty (`start == end == cursor`) when a run folded notes alone. `summariser` says what made it: the
    kind and, where there is one, the version of the prompt (`llm ledger.v2`, `extractive`, `llm recursive.v2`).
    """

    id: SegmentId
    session_id: SessionId
    start: Seq
    end: Seq
    started_at: float
    ended_at: float
    gist: str
    facts: tuple[Fact, ...]
    note_ids: tuple[NoteId, ...]
    summariser: str
    degraded: bool = False
    closing: bool = False
    created_at: float = 0.0
    original_tokens: int = 0
    compressed_tokens: int = 0
    # Its time in the archive is over: its facts are gone, its gist stands for it.
    pruned: bool = False

    @property
    def is_recursive(self) -> bool:
        """Return whether its gist retells all that was before it, and isn't about its own batch alone."""
        return any(word.startswith(Strategy.RECURSIVE.value) for word in self.summariser.split())


@dataclass(frozen=True, slots=True)
class CompactionState:
    """What one session knows of its own folding; every field survives a restart.

    `cursor` is the first seq that is not folded (so `covered_through_turn` is `cursor - 1`). `revision`
    counts landings and repairs, for compare-and-swap.
    """

    cursor: Seq = Seq(0)
    revision: int = 0
    summary: str | None = None
    last_at: float | None = None
    pending_notes: tuple[Note, ...] = field(default=())

    @property
    def covered_through_turn(self) -> int:
        """Return the highest folded seq, or -1 before the first landing."""
        return self.cursor - 1


@dataclass(frozen=True, slots=True)
class RenderedSentence:
    """One sentence of the summary, who said it (empty where nobody did) and when (epoch seconds), and what it
    stands on: `refs` are facts as `segment_id#index`, empty for a gist."""

    text: str
    segment_ids: tuple[SegmentId, ...]
    turn_seqs: tuple[Seq, ...]
    slot: Slot
    speaker: str
    at: float
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedSummary:
    """The summary as it is injected, and its sentences in order: `text` is theirs, joined by spaces."""

    text: str
    sentences: tuple[RenderedSentence, ...]
