"""How fast a voice speaks: how long a text will take, and which of its words a stretch of its sound has said. Pure.

No voice tells which words its sound stands for. What is known of it is an estimate, made where a sentence breaks off.
"""

from __future__ import annotations

# Of English voices at their default speed, spaces counted; measured over the embedded voice's.
CHARS_A_SECOND = 15.0
# How much a newly heard sentence tells against those before it.
_WEIGHT = 0.2
# Shorter stretches are mostly the silence around them.
_SHORTEST_S = 0.5
# So much of a word may be missing of it: an estimate that ends at a word's end ends before it half of the time.
_NEARLY = 0.25
# What a voice can be: from very slow to very fast.
_SLOWEST, _FASTEST = 5.0, 40.0


class SpeechRate:
    """One voice's pace, learned from what it has said."""

    def __init__(self, chars_a_second: float = CHARS_A_SECOND) -> None:
        self._chars_a_second = chars_a_second

    def learn(self, text: str, spoken_s: float) -> None:
        """Take a whole text and how long it took."""
        if spoken_s >= _SHORTEST_S:
            heard = min(max(len(text) / spoken_s, _SLOWEST), _FASTEST)
            self._chars_a_second += _WEIGHT * (heard - self._chars_a_second)

    def duration_s(self, text: str) -> float:
        """Return how long `text` will take."""
        return len(text) / self._chars_a_second

    def share(self, text: str, spoken_s: float) -> float:
        """Return how much of `text` (0 to 1) has been said after `spoken_s` of its sound."""
        whole_s = self.duration_s(text)
        return min(1.0, spoken_s / whole_s) if whole_s else 1.0


def words_until(text: str, share: float) -> str:
    """Return the words that were said when so much of `text` (0 to 1) was; a word that was only begun is none."""
    words = text.split()
    return " ".join(words[: _said(words, share)])


def words_after(text: str, share: float) -> str:
    """Return the words that were not said yet: `words_until` and these are the whole text."""
    words = text.split()
    return " ".join(words[_said(words, share) :])


def _said(words: list[str], share: float) -> int:
    return min(len(words), int(len(words) * share + _NEARLY))
