"""Counts tokens for one model, with the model's tokeniser or an estimate, and corrects the count by the provider's
bills.

One bill corrects nothing, because it may be a mistake. What two of the latest bills agree on does, as long as they are
among the latest.
"""

from __future__ import annotations

import re
from collections import deque
from enum import StrEnum

from compaction.tokens import Tokenizer, estimate_text_tokens

# Smaller calls correct nothing: what a provider adds to each call would count as much as their text.
_LARGE_TOKENS = 1_000
# The most that is billed for one token that we count: another vocabulary takes no more.
_MOST_FACTOR = 4.0
# The bills that a correction is made of. Older ones are forgotten.
_LATEST_BILLS = 24
# How many token counts are cached. This is several times the number of turns in a long window.
_KEPT_TEXTS = 4_096


class Estimator:
    """Counts tokens for one model. All tasks of one event loop may use it.

    Counts are not corrected. `billed` and `room` are, by `factor`: the tokens that the provider bills for one of ours.
    """

    def __init__(self, tokenizer: Tokenizer | None = None) -> None:
        self.factor = 1.0
        self._factors: deque[float] = deque(maxlen=_LATEST_BILLS)
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
        """Take one more bill into account. Returns whether the factor has changed.

        The strangest bill is left out. One below the count lowers nothing, because it may be due to a cache.
        """
        if count >= _LARGE_TOKENS:
            self._factors.append(reported / count)
        before, self.factor = self.factor, min(_MOST_FACTOR, max((1.0, *sorted(self._factors)[-2:-1])))
        return self.factor != before

    def billed(self, count: int) -> int:
        """Return how many tokens the provider is expected to bill at most for `count` counted tokens."""
        return int(count * self.factor + 0.999_999)

    def room(self, max_tokens: int) -> int:
        """Return the largest count that is billed as at most `max_tokens`. Returns 0 if there is none."""
        room = max(0, int(max_tokens / self.factor))
        return room - 1 if room and self.billed(room) > max_tokens else room


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
