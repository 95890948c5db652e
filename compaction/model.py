"""The values of a session's memory: turns, notes, facts, segments and the compaction state.

All values are immutable and use only the standard library. Terms: docs/glossary.md; invariants: docs/memory.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, NewType, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

SessionId = NewType("SessionId", str)
NoteId = NewType("NoteId", str)
RunId = NewType("RunId", str)
SegmentId = NewType("SegmentId", str)

# The number of a turn in its session, from 0, never reused. Cursors and ranges use seqs and not list indices, because
# the positions in a bounded list shift.
Seq = NewType("Seq", int)


# The version of segments that no model wrote.
EXTRACTIVE = "extractive"


class Mode(StrEnum):
    """How a session remembers turns that have left its recent window."""

    SUMMARY = "summary"
    ROLLING = "rolling"
    OFF = "off"


class TurnKind(StrEnum):
    """What kind of contribution a turn is. `typed`: somebody wrote it to the bot in a chat. `membership`: people came
    or left. `effect`: a sound that is no speech, as the recogniser names it: '[laughter]'. `assistant`: a reply of the
    bot.
    """

    SPEECH = "speech"
    TYPED = "typed"
    MEMBERSHIP = "membership"
    EFFECT = "effect"
    ASSISTANT = "assistant"


# What people say in words, aloud or in a chat.
SAID = frozenset({TurnKind.SPEECH, TurnKind.TYPED})


class UtteredWords(NamedTuple):
    """What somebody said in one breath. `began_at`: UTC epoch seconds. `lasted_s`: how long they spoke."""

    began_at: float
    text: str
    lasted_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TurnPart:
    """What one speaker contributed to a turn. `speaker_id` is stable; `speaker` is the display name at that time.
    `spoken_s`: how long they spoke; 0 for what was not spoken, or if that is unknown.

    `utterances`: what the text consists of. It is not stored. Empty: they began when the turn began.
    """

    speaker_id: str
    speaker: str
    text: str
    spoken_s: float = 0.0
    utterances: tuple[UtteredWords, ...] = field(default=(), compare=False, kw_only=True)

    @classmethod
    def spoken(cls, speaker_id: str, speaker: str, utterances: Iterable[UtteredWords]) -> TurnPart:
        """Return the part that consists of these utterances."""
        said = tuple(utterances)
        text, spoken_s = " ".join(each.text for each in said), round(sum(each.lasted_s for each in said), 2)
        return cls(speaker_id, speaker, text, spoken_s, utterances=said)

    def as_utterances(self, began_at: float) -> tuple[UtteredWords, ...]:
        """Return its utterances. `began_at`: of its turn, where nothing more is known."""
        return self.utterances or (UtteredWords(began_at, self.text, self.spoken_s),)


@dataclass(frozen=True, slots=True)
class Turn:
    """One immutable contribution, with a part for each speaker. Times are UTC epoch seconds.

    `parts` is empty only in a tombstone. `answers`: the turn after which the bot said it, or made it; None if that is
    unknown. `told_to`: the ids of whom the bot told it, if it was for some more than for others. `sources`: those of
    people whom it may be about, or whose words it may have, although they said nothing in this session. `called`: all
    of it was said to the bot.
    """

    seq: Seq
    kind: TurnKind
    started_at: float
    ended_at: float
    parts: tuple[TurnPart, ...]
    # The turn was forgotten: its words are deleted, but its number stays, so that no range has a gap.
    tombstone: bool = False
    answers: Seq | None = None
    called: bool = False
    told_to: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def is_talk(self) -> bool:
        """Return whether people said it among themselves."""
        return self.kind is TurnKind.SPEECH and not self.called

    @property
    def is_with_bot(self) -> bool:
        """Return whether people said it to the bot, or the bot to them: it is no evidence of what they talked about."""
        return self.called or self.kind in {TurnKind.TYPED, TurnKind.ASSISTANT}

    @property
    def text(self) -> str:
        """Return what everybody says in the turn, in order, without names."""
        return " ".join(part.text for part in self.parts)

    def with_parts(self, parts: tuple[TurnPart, ...]) -> Turn:
        """Return this turn with some of its parts: a tombstone with none, and the same object with all."""
        return (
            self
            if parts == self.parts
            else replace(
                self,
                parts=parts,
                tombstone=not parts,
                told_to=self.told_to if parts else (),
                sources=self.sources if parts else (),
            )
        )

    def without_words(self) -> Turn:
        """Return the tombstone of this turn."""
        return self.with_parts(())


class NoteTrigger(StrEnum):
    """What made the bot look at a screen."""

    SHARE_START = "share_start"
    CUT = "cut"
    TEXT = "text"
    INTERVAL = "interval"
    ASKED = "asked"


class NoteSource(StrEnum):
    """Which reader of the screen made a note."""

    OCR = "ocr"
    MODEL = "model"


# The longest reason of a note.
MAX_REASON_CHARS = 80


@dataclass(frozen=True, slots=True)
class Note:
    """One thing seen on the screen that `who` shared. `what`: a text of at most 220 characters. `at`: UTC epoch
    seconds. `why`: the reason for which it was noted, such as 'Ada asked about it', at most 80 characters. `person_id`:
    the id of `who`, None for nobody who may withhold it, as in a replay. `trigger` is not stored.
    """

    id: NoteId
    at: float
    who: str
    what: str
    why: str = ""
    source: NoteSource = NoteSource.OCR
    frame_hash: str = ""
    person_id: str | None = None
    trigger: NoteTrigger = field(default=NoteTrigger.TEXT, compare=False)


class FactKind(StrEnum):
    """The kinds of facts.

    `confided`: told in confidence, not to be passed on; no digest has it, whatever else it is. `lasting`: people's own,
    such as family, health, codes, debts and dates. `decision`: what was decided or promised.
    `open`: a question, request or promise that is not yet met. `doing`: what the group does, such as a game, a film or
    what is on a shared screen.
    """

    CONFIDED = "confided"
    LASTING = "lasting"
    DECISION = "decision"
    OPEN = "open"
    DOING = "doing"
    OTHER = "other"


# How important a fact is: 3 must not be lost, 2 matters for the evening, 1 is a detail.
Importance: TypeAlias = Literal[1, 2, 3]


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence worth keeping, with the turns that it was made of.

    `turns`: ascending, at least one. `text`: names whom it is about; without a model, a quote: 'Ada: "…"'. `closes`:
    the facts that this one replaces, answers or finishes, each as `segment_id#index`. `speaker` and `at` (UTC epoch
    seconds) come from those turns, never from a model. `owner`: whose fact it is, or who has to do it; `until`: when
    it is due; both only where a model gives them. `note_id`: the screen note that it was made of, if any; its `speaker`
    is who shared, and its turn is the first of its segment.
    """

    turns: tuple[Seq, ...]
    text: str
    kind: FactKind = FactKind.OTHER
    importance: Importance = 2
    closes: tuple[str, ...] = ()
    speaker: str = ""
    at: float = 0.0
    owner: str = ""
    until: str = ""
    note_id: NoteId | None = None

    @property
    def turn_seq(self) -> Seq:
        """Return the first turn that it was made of."""
        return self.turns[0]

    def blanked(self) -> Fact:
        """Return the fact without what it says. It keeps its number in the segment, which others may name."""
        return replace(self, text="", speaker="", owner="", until="", note_id=None)


@dataclass(frozen=True, slots=True)
class Segment:
    """The stored record of one fold: turns `start <= seq < end`. Times are UTC epoch seconds.

    `gist`: what these turns were about. `heading`: of their chapter, which the segments beside it may share; empty if
    nothing is worth one. `paragraph`: the summary of the whole session up to `end`, as it was written in
    this fold; empty in a closing segment, and where words in it were forgotten. `prompt_version`: the prompt that a
    model was asked with, or what made the segment without one: `extractive`, `imported`.

    The range is empty (`start == end == cursor`) if the run folded notes alone. `closing`: made at the end of the
    session, without moving the cursor. `created_at`: later than that of every earlier segment of its session.
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
    prompt_version: str
    paragraph: str = ""
    heading: str = ""
    closing: bool = False
    created_at: float = 0.0
    original_tokens: int = 0
    compressed_tokens: int = 0
    # The segment was archived for so long that its facts were deleted. Heading and gist are kept.
    pruned: bool = False

    @property
    def is_confided(self) -> bool:
        """Return whether somebody told something in confidence there, of which the gist may tell."""
        return any(fact.kind is FactKind.CONFIDED for fact in self.facts)

    @property
    def is_by_model(self) -> bool:
        """Return whether a model wrote it."""
        return self.prompt_version not in {"", EXTRACTIVE}


class FoldFlaw(StrEnum):
    """What was wrong with a model's answer that is used all the same. Each is the word for it in the log."""

    # The model, or its endpoint, stopped before the end. What was whole is used.
    CUT_OFF = "answer_cut_off"
    # Facts name none of the batch's turns. They are left out.
    ABSENT_TURNS = "facts_without_turns"
    # Hardly anything was said in the script of the summary.
    OTHER_SCRIPT = "summary_in_another_script"


@dataclass(frozen=True, slots=True)
class CompactionState:
    """The stored state of one session's compaction.

    `cursor` is the first seq that is not folded. `revision` counts landings; the store compares it to
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
