"""Counts tokens for one model, by its own tokeniser or by the estimate, and calibrates by what the provider bills.

The calibration only rises: a bill below the count may come from a cache, and a bill above it will come again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from compaction.tokens import estimate_text_tokens, message_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compaction.tokens import HasContent, Tokenizer

# In larger calls a difference is ascribed to the text, in smaller ones to the overhead.
_LARGE_TOKENS = 1_000
# The most that one strange bill may change: a hidden prompt of the provider, and a very different vocabulary.
_MOST_EXTRA_TOKENS = 2_000
_MOST_FACTOR = 4.0
# How many texts' counts are cached: the turns of a long window several times over.
_KEPT_TEXTS = 4_096


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a provider bills compared with the count: `count * factor + extra_tokens`. Neither ever falls."""

    factor: float = 1.0
    extra_tokens: int = 0

    def billed(self, count: int) -> int:
        """Return the most that `count` tokens will be billed as."""
        return int(count * self.factor + 0.999_999) + self.extra_tokens

    def room(self, max_tokens: int) -> int:
        """Return the largest count that is billed as at most `max_tokens`, or 0."""
        room = max(0, int((max_tokens - self.extra_tokens) / self.factor))
        return room - 1 if room and self.billed(room) > max_tokens else room

    def updated(self, *, count: int, reported: int) -> Calibration:
        """Return the calibration after a call that was counted as `count` and billed as `reported` prompt tokens."""
        if count <= 0 or reported <= self.billed(count):
            return self
        if count < _LARGE_TOKENS:
            extra = reported - int(count * self.factor)
            return replace(self, extra_tokens=min(_MOST_EXTRA_TOKENS, extra))
        return replace(self, factor=min(_MOST_FACTOR, (reported - self.extra_tokens) / count))


class Estimator:
    """Counts tokens for one model. Safe for all tasks of one loop.

    Counts are not calibrated; `room` converts a limit in the provider's tokens into one in counts.
    """

    def __init__(self, model: str = "", tokenizer: Tokenizer | None = None) -> None:
        self.model = model
        self.calibration = Calibration()
        self._count = estimate_text_tokens if tokenizer is None else tokenizer.count
        self._exact = tokenizer is not None
        self._known: dict[str, int] = {}

    @property
    def exact(self) -> bool:
        """Return whether the model's own tokeniser counts."""
        return self._exact

    def text(self, text: str) -> int:
        known = self._known.get(text)
        if known is None:
            known = self._count(text)
            if len(self._known) >= _KEPT_TEXTS:
                # Drops the oldest, which has left the window.
                del self._known[next(iter(self._known))]
            self._known[text] = known
        return known

    def messages(self, messages: Iterable[HasContent]) -> int:
        return sum(message_tokens(message, self.text) for message in messages)

    def room(self, max_tokens: int) -> int:
        """Return the largest count that the provider bills as at most `max_tokens`."""
        return self.calibration.room(max_tokens)

    def learn(self, *, count: int, reported: int) -> bool:
        """Calibrate by a call of `count` tokens, billed as `reported`; return whether that was more than expected."""
        updated = self.calibration.updated(count=count, reported=reported)
        changed = updated != self.calibration
        self.calibration = updated
        return changed


class Family(StrEnum):
    """A vocabulary shared by several models; the value is its public name.

    Only public vocabularies are listed. Claude's is not public: what pip offers is Claude 2's, and later models count
    differently. Their tokens are estimated and calibrated by what the provider reports.
    """

    O200K = "o200k_base"
    CL100K = "cl100k_base"
    QWEN = "qwen"


# Tried in order, on the last part of the name in lower case. Sources: tiktoken's model table; Qwen's model cards
# (Qwen 1 to 3 share one vocabulary, 3.5 has another).
_NAMES: tuple[tuple[re.Pattern[str], Family], ...] = (
    (re.compile(r"^(ft:)?(gpt-4o|gpt-4\.[15]|chatgpt-4o|gpt-5|gpt-oss)"), Family.O200K),
    (re.compile(r"^o[134](-|$)"), Family.O200K),
    (re.compile(r"^(ft:)?(gpt-4|gpt-3\.5|gpt-35)(-|$)"), Family.CL100K),
    (re.compile(r"^text-embedding-(3|ada)"), Family.CL100K),
    (re.compile(r"^(qwen([123]|1\.5|2\.5)?([^0-9.]|$)|qwq)"), Family.QWEN),
)


def family_of(model: str) -> Family | None:
    """Return the vocabulary of the model of that name, or None when it is not a known one.

    A provider's prefix (`openai/`), a path and a tag (`:7b`) are ignored: `ollama/qwen2.5:7b` is a Qwen.
    """
    name = model.strip().lower().replace("\\", "/").rsplit("/", 1)[-1]
    return next((family for pattern, family in _NAMES if pattern.match(name)), None)
