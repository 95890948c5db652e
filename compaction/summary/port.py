"""What folds a batch: given turns and notes, return a gist and facts, or say why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from compaction.model import Strategy

if TYPE_CHECKING:
    from compaction.language.claims import FactClaim
    from compaction.model import Fact, Note, Seq, Turn

# A gist stands for ten turns in lists and archives. MEMORY.md: each batch once, at most 300 characters.
MAX_GIST_CHARS = 300
# The longest fact a segment keeps. A summary of 1,200 characters must hold several.
MAX_FACT_CHARS = 240
# So many facts a batch: more than one a turn is a transcript, not a summary.
MAX_FACTS = 16


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact of an earlier segment that a new one may supersede. `ref` is `segment_id#index`."""

    ref: str
    claim: FactClaim


@dataclass(frozen=True, slots=True)
class FoldRequest:
    """One batch to fold. `turns` are whole, not clipped, and without a gap, the first being `start`; none when
    notes are folded alone. `notes` are oldest first.

    `previous` is the summary so far, to read and not to repeat; `known` are the facts it may correct, newest
    last; `before` are the turns just before the batch, as far as they are at hand, to understand it by; `roster` are
    display names of everybody met in the session. `strategy` says what is to be made of it.
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
    """What stands for the batch. `gist` is never blank and ends on a sentence: under `ledger` it has at most 300
    characters and is about the batch; under `recursive` it is the whole summary, at most 1,200 characters, and there
    are no facts. `form` says how it was made: the version of the prompt, or `recursive` where no model was asked.
    Token counts are None where no model was asked or it didn't tell."""

    gist: str
    facts: tuple[Fact, ...]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    form: str = ""


class Summariser(Protocol):
    """Folds batches. Implementations: `summarisers.llm`, `summarisers.extractive`."""

    @property
    def name(self) -> str:
        """Return the kind, for logs and segments: `llm` or `extractive`."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs; empty where there is none."""

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the fold of one batch, as `request.strategy` wants it.

        Raises CompletionError when the model failed and SummaryRefusedError when its answer can't stand for the
        turns. The caller sets the deadline (asyncio.timeout). *Cancellation*: safe at any point.
        """
