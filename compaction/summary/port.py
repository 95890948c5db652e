"""The port of summarisers: given turns and notes, return a gist and facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from compaction.model import Strategy

if TYPE_CHECKING:
    from compaction.language.claims import FactClaim
    from compaction.model import Fact, Note, Seq, Turn

# A gist represents ten turns in lists and archives. MEMORY.md: each batch once, at most 300 characters.
MAX_GIST_CHARS = 300
# The longest fact a segment keeps. A summary of 1,200 characters must hold several.
MAX_FACT_CHARS = 240
# Facts per batch: more than one or two per turn would be a transcript, not a summary.
MAX_FACTS = 16


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact of an earlier segment that a new one may supersede. `ref` is `segment_id#index`."""

    ref: str
    claim: FactClaim


@dataclass(frozen=True, slots=True)
class FoldRequest:
    """One batch to fold. `turns`: uncut and without a gap, from `start` on; none if notes are folded alone.

    `notes`: oldest first. `previous`: the summary so far, for the model to read and not to repeat. `known`: facts that
    the batch may correct, newest last. `before`: available turns just before the batch, to understand it. `roster`:
    display names of everybody in the session so far. `strategy`: what to make of the batch.
    """

    start: Seq
    turns: tuple[Turn, ...]
    notes: tuple[Note, ...]
    previous: str | None
    known: tuple[KnownFact, ...] = ()
    before: tuple[Turn, ...] = ()
    roster: frozenset[str] = frozenset()
    strategy: Strategy = Strategy.LEDGER


@dataclass(frozen=True, slots=True)
class Fold:
    """The result of a fold. `gist` is never blank and ends with a sentence.

    Under `ledger` the gist is about the batch, at most 300 characters. Under `recursive` it is the whole summary, at
    most 1,200 characters, and there are no facts. `form`: the version of the prompt, or `recursive` without a model.
    Token counts are None without a model, or if it did not report them.
    """

    gist: str
    facts: tuple[Fact, ...]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    form: str = ""


class Summariser(Protocol):
    """Folds batches. Implementations: `summary.llm`, `summary.extractive`."""

    @property
    def name(self) -> str:
        """Return the kind, for logs and segments: `llm` or `extractive`."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs; empty where there is none."""

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the fold of one batch by `request.strategy`.

        Raises CompletionError if the model failed, SummaryRefusedError if its answer is unusable. The caller sets the
        deadline (asyncio.timeout). *Cancellation*: safe at any point.
        """
