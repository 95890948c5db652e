"""The interface of summarisers: a request with turns and notes goes in, one fold comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from compaction.model import Fact, FoldFlaw, Note, Seq, Turn

# The limit of a gist, which represents ten turns in lists and archives.
MAX_GIST_CHARS = 300
# The limit of a chapter's heading, and so of a record's topic.
MAX_HEADING_CHARS = 80
# Spec 1: CONTEXT_COMPACTION_MAX_SUMMARY_CHARS.
MAX_SUMMARY_CHARS = 1_200
# The longest fact. A summary of 1,200 characters must hold several.
MAX_FACT_CHARS = 240
# The most facts per batch. More than one or two per turn would be a transcript and not a summary.
MAX_FACTS = 16
# So many turns before a batch are read with it, because an answer or a correction in it may be about them.
REACH_TURNS = 8
NOTHING_KEPT = "Nothing that needs keeping."
# How long a fold may take. Nobody waits for one, and a slow local model takes minutes.
FOLD_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact of an earlier segment that holds. `ref`: `segment_id#index`, by which later facts close it."""

    ref: str
    fact: Fact


@dataclass(frozen=True, slots=True)
class FoldRequest:
    """One batch to fold. `turns`: uncut and without a gap, from `start` on; empty if only notes are folded.

    `notes`: those that the fold tells of, oldest first. `previous`: the paragraph so far; None if it is to be written
    anew from `known` and `chapters`. `known`: all facts that hold, oldest first. `chapters`: a line for each chapter so
    far, oldest first. `before`: the turns just before the batch, to understand it. `heading`: of the chapter so far,
    which the batch may go on with; empty if there is none.
    """

    start: Seq
    turns: tuple[Turn, ...]
    notes: tuple[Note, ...] = ()
    previous: str | None = None
    known: tuple[KnownFact, ...] = ()
    chapters: tuple[str, ...] = ()
    before: tuple[Turn, ...] = ()
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """The result of a fold. `gist` is never blank, ends with a sentence, and has at most 300 characters.

    `paragraph`: the summary of the whole session, at most 1,200 characters; it ends with a sentence. `heading`,
    `prompt_version`: see `Segment`; without a heading, one is made of the facts. Token counts are None without a model,
    or if it did not report them. `unsourced`: how many figures and names of the paragraph the request does not hold.
    `flaws`: why the answer is not all that was asked for.
    """

    gist: str
    facts: tuple[Fact, ...]
    paragraph: str
    prompt_version: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    unsourced: int = 0
    heading: str = ""
    flaws: tuple[FoldFlaw, ...] = ()


class Summariser(Protocol):
    """Folds batches. Implementations: `summary.llm`, `summary.extractive`."""

    @property
    def name(self) -> str:
        """Return the kind of summariser, for logs: `llm` or `extractive`."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs. It is empty if no model is used."""

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the fold of one batch.

        Raises CompletionError if the model failed and SummaryRefusedError if its answer is unusable. The caller sets
        the deadline (asyncio.timeout). *Cancellation*: safe at any point.
        """
