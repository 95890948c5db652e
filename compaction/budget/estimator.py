"""Counts tokens for one model, with the model's tokeniser or an estimate, and corrects the count by the provider's
bills.

One bill corrects nothing, because it may be a mistake. What two of the latest bills agree on does, as long as they are
among the latest.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from compaction.tokens import Tokenizer, estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# In a call of at least this many tokens, a difference is ascribed to the text. In a smaller call it is ascribed to a
# fixed overhead.
_LARGE_TOKENS = 1_000
# Upper limits of the correction. The first allows for a hidden prompt of the provider, the second for a very different
# vocabulary.
_MOST_EXTRA_TOKENS = 2_000
_MOST_FACTOR = 4.0
# The bills that a correction is made of. Older ones are forgotten.
_LATEST_BILLS = 24
# How many token counts are cached. This is several times the number of turns in a long window.
_KEPT_TEXTS = 4_096


class Bill(NamedTuple):
    """The prompt tokens of one call: how many we counted, and how many the provider billed."""

    counted: int
    billed: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Converts a token count into the tokens that a provider bills: `count * factor + extra_tokens`."""

    factor: float = 1.0
    extra_tokens: int = 0

    @classmethod
    def of(cls, bills: Iterable[Bill]) -> Calibration:
        """Return the calibration that these bills call for. The strangest bill of each size is left out.

        A bill below the count lowers nothing, because it may be due to a cache.
        """
        known = [bill for bill in bills if bill.counted > 0]
        extras = [bill.billed - bill.counted for bill in known if bill.counted < _LARGE_TOKENS]
        extra = min(_MOST_EXTRA_TOKENS, max(0, _second_highest(extras)))
        factors = [(bill.billed - extra) / bill.counted for bill in known if bill.counted >= _LARGE_TOKENS]
        return cls(min(_MOST_FACTOR, max(1.0, _second_highest(factors))), int(extra))

    def billed(self, count: int) -> int:
        """Return how many tokens the provider is expected to bill at most for `count` counted tokens."""
        return int(count * self.factor + 0.999_999) + self.extra_tokens

    def room(self, max_tokens: int) -> int:
        """Return the largest count that is billed as at most `max_tokens`. Returns 0 if there is none."""
        room = max(0, int((max_tokens - self.extra_tokens) / self.factor))
        return room - 1 if room and self.billed(room) > max_tokens else room


def _second_highest(values: Sequence[float]) -> float:
    """Return the highest value but one, or 0 for fewer than two values."""
    return sorted(values)[-2] if len(values) > 1 else 0


class Estimator:
    """Counts tokens for one model. All tasks of one event loop may use it.

    Counts are not calibrated. `calibration` converts a limit in the provider's tokens into a limit for counts.
    """

    def __init__(self, tokenizer: Tokenizer | None = None) -> None:
        self.calibration = Calibration()
        self._bills: deque[Bill] = deque(maxlen=_LATEST_BILLS)
        self._count = estimate_text_tokens if tokenizer is None else tokenizer.count
        # Whether the model's own tokeniser is used.
        self.exact = tokenizer is not None
        # By the text's hash: what people said is not kept here. Two of so few texts have never the same one.
        self._known: dict[int, int] = {}

    def count(self, text: str) -> int:
        key = hash(text)
        known = self._known.get(key)
        if known is None:
            known = self._count(text)
            if len(self._known) >= _KEPT_TEXTS:
                # Remove the oldest entry, because its text has left the window.
                del self._known[next(iter(self._known))]
            self._known[key] = known
        return known

    def learn(self, *, count: int, reported: int) -> bool:
        """Take one more bill into account. Returns whether the calibration has changed."""
        self._bills.append(Bill(count, reported))
        before, self.calibration = self.calibration, Calibration.of(self._bills)
        return self.calibration != before


class Family(StrEnum):
    """A vocabulary that several models share. The value is its public name.

    Only public vocabularies are listed. Claude's vocabulary is not public: the package on PyPI has the one of Claude 2,
    and later models count differently. Claude's tokens are estimated and calibrated by what the provider reports.
    """

    O200K = "o200k_base"
    CL100K = "cl100k_base"
    QWEN = "qwen"


# The patterns are tried in order, on the last part of the model name in lower case. Sources: tiktoken's model table and
# Qwen's model cards (Qwen 1 to 3 share one vocabulary, Qwen 3.5 has another).
_NAMES: tuple[tuple[re.Pattern[str], Family], ...] = (
    (re.compile(r"^(ft:)?(gpt-4o|gpt-4\.[15]|chatgpt-4o|gpt-5|gpt-oss)"), Family.O200K),
    (re.compile(r"^o[134](-|$)"), Family.O200K),
    (re.compile(r"^(ft:)?(gpt-4|gpt-3\.5|gpt-35)(-|$)"), Family.CL100K),
    (re.compile(r"^text-embedding-(3|ada)"), Family.CL100K),
    (re.compile(r"^(qwen([123]|1\.5|2\.5)?([^0-9.]|$)|qwq)"), Family.QWEN),
)


def family_of(model: str) -> Family | None:
    """Return the vocabulary of the model with this name, or None if it is not a known model.

    A provider's prefix (`openai/`), a path and a tag (`:7b`) are ignored: `ollama/qwen2.5:7b` is a Qwen model.
    """
    name = model.strip().lower().replace("\\", "/").rsplit("/", 1)[-1]
    return next((family for pattern, family in _NAMES if pattern.match(name)), None)
