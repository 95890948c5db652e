"""Counts tokens for one model: by its own tokeniser, or by the guess; and learns from what the provider bills.

A count is never corrected downward: a bill below it may be a cache's doing, and one above it will come again.
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

# From here on what a bill exceeds the count by is put down to the text, and below to the frame around it.
_LARGE_TOKENS = 1_000
# What one strange bill may do: a provider's hidden prompt, and a vocabulary quite unlike the one counted in.
_MOST_EXTRA_TOKENS = 2_000
_MOST_FACTOR = 4.0
# Texts whose count is kept: the turns of a long window, several times over. A count is a few microseconds.
_KEPT_TEXTS = 4_096


@dataclass(frozen=True, slots=True)
class Calibration:
    """How much dearer a model is than its count: `count * factor + extra_tokens`. Neither ever falls."""

    factor: float = 1.0
    extra_tokens: int = 0

    def billed(self, count: int) -> int:
        """Return what `count` tokens will be billed as, at most."""
        return int(count * self.factor + 0.999_999) + self.extra_tokens

    def room(self, max_tokens: int) -> int:
        """Return the largest count that is billed as at most `max_tokens`; 0 when there is none."""
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
    """Counts for one model. `exact` tells whether its own tokeniser does. Safe for all tasks of one loop.

    Counts are raw; `room` says how many of them a limit in the provider's tokens allows.
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
        """Return the count of one text."""
        known = self._known.get(text)
        if known is None:
            known = self._count(text)
            if len(self._known) >= _KEPT_TEXTS:
                # The oldest leaves; of a window that moves on, that is one that is not asked for again.
                del self._known[next(iter(self._known))]
            self._known[text] = known
        return known

    def messages(self, messages: Iterable[HasContent]) -> int:
        """Return the count of these messages, their frames included."""
        return sum(message_tokens(message, self.text) for message in messages)

    def room(self, max_tokens: int) -> int:
        """Return the largest count that the provider bills as at most `max_tokens`."""
        return self.calibration.room(max_tokens)

    def learn(self, *, count: int, reported: int) -> bool:
        """Take in what a call of `count` was billed as; return whether it was more than expected."""
        learnt = self.calibration.updated(count=count, reported=reported)
        changed = learnt != self.calibration
        self.calibration = learnt
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

    A provider's prefix (`openai/`), a path and a tag (`:7b`) don't matter: `ollama/qwen2.5:7b` is a Qwen.
    """
    name = model.strip().lower().replace("\\", "/").rsplit("/", 1)[-1]
    return next((family for pattern, family in _NAMES if pattern.match(name)), None)
