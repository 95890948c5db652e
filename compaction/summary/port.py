"""The interface of summarisers: given turns and notes, they return a gist and facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from compaction.model import Strategy

if TYPE_CHECKING:
    from compaction.model import Chapter, Fact, Note, Segment, Seq, Turn

# The limit of a gist, which represents ten turns in lists and archives.
MAX_GIST_CHARS = 300
MAX_CHAPTER_GIST_CHARS = 400
# Spec 1: CONTEXT_COMPACTION_MAX_SUMMARY_CHARS.
MAX_SUMMARY_CHARS = 1_200
# Parts of a chapter (docs/memory.md, 'Chapters').
CHAPTER_PARTS = 8
# The weightiest facts of a chapter: one for each of its parts.
CHAPTER_FACTS = 8
# The longest fact a segment keeps. A summary of 1,200 characters must hold several.
MAX_FACT_CHARS = 240
# The most facts per batch. More than one or two per turn would be a transcript and not a summary.
MAX_FACTS = 16
# So many turns before a batch are read with it, because an answer or a correction in it may be about them.
REACH_TURNS = 8
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A standing fact of an earlier segment, which a new one may supersede.

    `ref`: `segment_id#index`. `label`: its name in prompts, the number of its turn, with a letter if the turn has more
    facts (`57`, `57b`), and `screen57` for one from a note. A prompt names a fact anew whose label is empty or taken.
    """

    ref: str
    fact: Fact
    label: str = ""


def known_facts_of(segment: Segment) -> list[KnownFact]:
    """Return the facts of a segment that have a text, in order, each with its ref and its label."""
    return [known_fact(segment, number) for number, fact in enumerate(segment.facts) if fact.text]


def known_fact(segment: Segment, number: int) -> KnownFact:
    """Return the fact of this number in a segment, with its ref and its label."""
    return KnownFact(f"{segment.id}#{number}", segment.facts[number], _label(segment, number))


def _label(segment: Segment, number: int) -> str:
    """Return the number of a fact's first turn, with a letter if earlier facts of the segment have that turn."""
    fact = segment.facts[number]
    before = sum(
        each.turn_seq == fact.turn_seq and (each.note_id is None) == (fact.note_id is None)
        for each in segment.facts[:number]
    )
    screen = "screen" if fact.note_id is not None else ""
    return f"{screen}{fact.turn_seq}{_LETTERS[before % len(_LETTERS)] if before else ''}"


@dataclass(frozen=True, slots=True)
class FoldRequest:
    """One batch to fold. `turns`: uncut and without a gap, from `start` on; empty if only notes are folded.

    `notes`: oldest first. `previous`: the summary so far. `chapters`: those that no other chapter holds, oldest first.
    `known`: the standing facts, oldest first. `before`: available turns just before the batch, to understand it.
    `roster`: display names of everybody in the session so far. `strategy`: what to make of the batch.
    `wants_paragraph`: whether the fold's paragraph will be used.
    """

    start: Seq
    turns: tuple[Turn, ...]
    notes: tuple[Note, ...]
    previous: str | None
    known: tuple[KnownFact, ...] = ()
    before: tuple[Turn, ...] = ()
    roster: frozenset[str] = frozenset()
    strategy: Strategy = Strategy.LEDGER
    chapters: tuple[Chapter, ...] = ()
    wants_paragraph: bool = True


@dataclass(frozen=True, slots=True)
class Fold:
    """The result of a fold. `gist` is never blank, ends with a sentence, and has at most 300 characters.

    `paragraph`: the checked summary of the whole session, at most 1,200 characters; empty if code has to make it, and
    `paragraph_problem` says why. Under `recursive` there is always a paragraph and there are no facts. `form`: the
    version of the prompt, or `recursive` without a model. `made_by`: the `name` of the summariser that made it, if that
    is not the one that was asked. Token counts are None without a model, or if it did not report them.
    """

    gist: str
    facts: tuple[Fact, ...]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    form: str = ""
    paragraph: str = ""
    paragraph_problem: str = ""
    made_by: str = ""


@dataclass(frozen=True, slots=True)
class ChapterPart:
    """A closed segment, or a chapter of the level below: its turns `start <= seq < end`, gist and standing facts.

    Times: when the turns were said, UTC epoch seconds.
    """

    start: Seq
    end: Seq
    started_at: float
    ended_at: float
    gist: str
    facts: tuple[KnownFact, ...]


@dataclass(frozen=True, slots=True)
class ChapterRequest:
    """One chapter to make of eight parts, and the paragraph to write anew with it.

    `level`: 1 over segments. `chapters`: those before it that no other chapter holds, oldest first. `since`: gists of
    the segments after it. `known`: the standing facts of the whole session, oldest first. `roster`: as in a fold.
    `summary`: the one that stands now. A model does not see it, so that no error of it goes on; the facts that it tells
    are the first that the model is shown.
    """

    level: int
    parts: tuple[ChapterPart, ...]
    chapters: tuple[Chapter, ...]
    since: tuple[str, ...]
    known: tuple[KnownFact, ...]
    roster: frozenset[str] = frozenset()
    summary: str = ""


@dataclass(frozen=True, slots=True)
class ChapterFold:
    """The result of a chapter: its gist (never blank, at most 400 characters) and the refs of its weightiest facts.

    `paragraph`, `paragraph_problem`, `form` and the token counts are as in `Fold`.
    """

    gist: str
    refs: tuple[str, ...]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    form: str = ""
    paragraph: str = ""
    paragraph_problem: str = ""


class Summariser(Protocol):
    """Folds batches and closes chapters. Implementations: `summary.llm`, `summary.extractive`."""

    @property
    def name(self) -> str:
        """Return the kind of summariser, for logs and segments: `llm` or `extractive`."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs. It is empty if no model is used."""

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the fold of one batch, using the strategy `request.strategy`.

        Raises CompletionError if the model failed and SummaryRefusedError if its answer is unusable. The caller sets
        the deadline (asyncio.timeout). *Cancellation*: safe at any point.
        """

    async def fold_chapter(self, request: ChapterRequest) -> ChapterFold:
        """Return one chapter, with the paragraph written anew. Raises as `fold` does."""
