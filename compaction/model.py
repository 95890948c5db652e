"""The values of a session's memory: turns, notes, facts, segments, the rendered summary and the compaction state.

All values are immutable and use only the standard library. Terms: docs/glossary.md; invariants: docs/memory.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, NewType, TypeAlias

SessionId = NewType("SessionId", str)
NoteId = NewType("NoteId", str)
RunId = NewType("RunId", str)
SegmentId = NewType("SegmentId", str)
ChapterId = NewType("ChapterId", str)

# The number of a turn in its session, from 0, never reused. Cursors and ranges use seqs and not list indices, because
# the positions in a bounded list shift.
Seq = NewType("Seq", int)


class Mode(StrEnum):
    """How a session remembers turns that have left its recent window."""

    SUMMARY = "summary"
    ROLLING = "rolling"
    OFF = "off"


class Strategy(StrEnum):
    """How a batch becomes a summary: by facts (`ledger`) or by rewriting one paragraph (`recursive`)."""

    LEDGER = "ledger"
    RECURSIVE = "recursive"


class TurnKind(StrEnum):
    """What kind of contribution a turn is. `membership`: people came or left. `effect`: a sound that is no speech, as
    the recogniser names it: '[laughter]'. `assistant`: a reply of the bot.
    """

    SPEECH = "speech"
    MEMBERSHIP = "membership"
    EFFECT = "effect"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class TurnPart:
    """What one speaker contributed to a turn. `speaker_id` is stable; `speaker` is the display name at that time."""

    speaker_id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One immutable contribution, with a part for each speaker. Times are UTC epoch seconds.

    `parts` is empty only in a tombstone. `answers`: the turn that a reply of the bot answers; None if it is unknown.
    """

    seq: Seq
    kind: TurnKind
    started_at: float
    ended_at: float
    parts: tuple[TurnPart, ...]
    # The turn was forgotten: its words are deleted, but its number stays, so that no range has a gap.
    tombstone: bool = False
    answers: Seq | None = None

    @property
    def text(self) -> str:
        """Return what everybody says in the turn, in order, without names."""
        return " ".join(part.text for part in self.parts)


class NoteReason(StrEnum):
    """Why a note was taken."""

    SHARE_START = "share_start"
    CUT = "cut"
    TEXT = "text"
    INTERVAL = "interval"
    ASKED = "asked"


class NoteSource(StrEnum):
    """Which reader of the screen made a note."""

    OCR = "ocr"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Note:
    """One thing seen on the screen that `who` shared. `what`: a text of at most 220 characters. `at`: UTC epoch
    seconds. `person_id`: the id of `who`; None in notes of earlier versions, of which only the name is known.
    """

    id: NoteId
    at: float
    who: str
    what: str
    why: NoteReason = NoteReason.TEXT
    source: NoteSource = NoteSource.OCR
    frame_hash: str = ""
    person_id: str | None = None


class FactKind(StrEnum):
    """The kinds of facts, the longest-lived first.

    `lasting`: people's own, such as family, health, codes, debts and dates. `decision`: what was decided or promised.
    `open`: a question, request or promise that is not yet met. `doing`: what the group does, such as a game, a film or
    what is on a shared screen.
    """

    LASTING = "lasting"
    DECISION = "decision"
    OPEN = "open"
    DOING = "doing"
    OTHER = "other"


# How important a fact is: 3 must not be lost, 2 matters for the evening, 1 is a detail.
Importance: TypeAlias = Literal[1, 2, 3]


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement worth keeping, with the turns it was said in.

    `turns`: ascending, at least one. `speaker` and `at` come from the first of them, never from a model. `quoted`:
    `text` is the speaker's own words; otherwise it is a sentence that names its `subject`, the person or thing it is
    about. `supersedes`: the facts that this one replaces or closes, each as `segment_id#index`. A fact read from a
    screen has its note in `note_id`; its `speaker` is who shared, and its turn is the first of its segment.
    """

    turns: tuple[Seq, ...]
    kind: FactKind
    speaker: str
    at: float
    text: str
    supersedes: tuple[str, ...] = ()
    note_id: NoteId | None = None
    subject: str = ""
    importance: Importance = 2
    quoted: bool = True

    @property
    def turn_seq(self) -> Seq:
        """Return the first turn it was said in."""
        return self.turns[0]

    @property
    def attributed_text(self) -> str:
        """Return the text, after its speaker's name if it is quoted; a fact read from a screen names the person."""
        return f"{self.speaker}: {self.text}" if self.quoted and self.note_id is None else self.text

    def blanked(self, supersedes: tuple[str, ...]) -> Fact:
        """Return the fact without what it says and who said it. It holds its number, which others may name."""
        return replace(self, speaker="", subject="", text="", supersedes=supersedes)


def is_by_model(summariser: str) -> bool:
    """Return whether a record's `summariser` is a model."""
    return summariser.startswith("llm")


@dataclass(frozen=True, slots=True)
class Segment:
    """The stored record of one folded batch: turns `start <= seq < end`. Times are UTC epoch seconds.

    `gist`: what its turns were about. `paragraph`: the summary of the whole session as the model wrote it in this fold;
    empty if code makes the summary instead, and `paragraph_problem` says why the model's was not used.

    The range is empty (`start == end == cursor`) if the run folded notes alone. `summariser`: the kind of summariser
    and the version of its prompt, if any (`llm ledger.v8`, `extractive`, `llm recursive.v6`). `degraded`: the model
    failed, so sentences were extracted without it. `closing`: the segment was made at the end of the session without
    moving the cursor. `created_at`: later than that of every record that was made before it in its session.
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
    # The segment was archived for so long that its facts were deleted. Its gist is kept.
    pruned: bool = False
    paragraph: str = ""
    paragraph_problem: str = ""

    @property
    def is_recursive(self) -> bool:
        """Return whether the gist summarises the whole session so far (`Strategy.RECURSIVE`) and not only its batch."""
        return any(word.startswith(Strategy.RECURSIVE.value) for word in self.summariser.split())

    @property
    def was_asked_of_model(self) -> bool:
        """Return whether a model was asked in this fold; it may have failed, or its answer may have been of no use."""
        return self.degraded or bool(self.paragraph_problem) or is_by_model(self.summariser)


@dataclass(frozen=True, slots=True)
class Chapter:
    """The stored record of eight closed segments, or of eight chapters of the level below. Times: UTC epoch seconds.

    It covers turns `start <= seq < end`. `level`: 1 over segments. `gist`: what those turns were about.
    `refs`: which of their facts matter most, as `segment_id#index`. `paragraph`, `paragraph_problem`: as in a segment;
    written without the paragraph before, so that drift can't add up. `summariser`: as in a segment.
    """

    id: ChapterId
    session_id: SessionId
    level: int
    start: Seq
    end: Seq
    started_at: float
    ended_at: float
    gist: str
    refs: tuple[str, ...]
    summariser: str
    created_at: float = 0.0
    paragraph: str = ""
    paragraph_problem: str = ""


def has_model_paragraph(record: Segment | Chapter) -> bool:
    """Return whether a model wrote the summary with this record, and what it wrote is used."""
    return bool(record.paragraph) and is_by_model(record.summariser)


@dataclass(frozen=True, slots=True)
class CompactionState:
    """The stored state of one session's compaction.

    `cursor` is the first seq that is not folded. `revision` counts landings and repairs; the store compares it to
    detect conflicting writes (compare-and-swap). `last_at`: UTC epoch seconds of the last landing.
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
    """One sentence of the summary and its sources.

    `speaker` is empty for a sentence from a gist. `at`: UTC epoch seconds. `refs`: the facts it comes from, each as
    `segment_id#index`; empty for a gist.
    """

    text: str
    segment_ids: tuple[SegmentId, ...]
    turn_seqs: tuple[Seq, ...]
    kind: FactKind
    speaker: str
    at: float
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedSummary:
    """The summary as it is sent to a model (`text`), and its sentences in order. `text` is the sentences joined by
    spaces.
    """

    text: str
    sentences: tuple[RenderedSentence, ...]
