"""Estimates how long a voice takes for a text, and how many words it has said after some seconds. Pure.

Voices do not report word timings, so the place where a sentence breaks off is estimated from the voice's usual speed.
"""

from __future__ import annotations

from voice.asr.unspaced import word_ends

# The speed of English voices by default, including spaces; measured with the embedded voice.
CHARS_A_SECOND = 15.0
# Weight of a new sentence relative to earlier ones.
_WEIGHT = 0.2
# Shorter sounds are ignored, because they are mostly silence.
_SHORTEST_S = 0.5
# A word counts as said if at most this share of it is missing, because half of the estimates are too short.
_NEARLY = 0.25
# Characters each second of very slow and very fast voices.
_SLOWEST, _FASTEST = 5.0, 40.0


class SpeechRate:
    """One voice's speed, learned from the sentences that it has spoken."""

    def __init__(self, chars_a_second: float = CHARS_A_SECOND) -> None:
        self._chars_a_second = chars_a_second

    def learn(self, text: str, spoken_s: float) -> None:
        """Learn from a text that took `spoken_s` seconds to speak completely."""
        if spoken_s >= _SHORTEST_S:
            measured = min(max(len(text) / spoken_s, _SLOWEST), _FASTEST)
            self._chars_a_second += _WEIGHT * (measured - self._chars_a_second)

    def duration_s(self, text: str) -> float:
        """Return how many seconds `text` will take."""
        return len(text) / self._chars_a_second

    def spoken_share(self, text: str, spoken_s: float) -> float:
        """Return how much of `text` (0 to 1) has been said after `spoken_s` of its sound."""
        whole_s = self.duration_s(text)
        return min(1.0, spoken_s / whole_s) if whole_s else 1.0


def words_until(text: str, share: float) -> str:
    """Return the words that were said when `share` (0-1) of `text` was spoken, without a word that was only begun.

    In scripts without spaces two signs count as one word, as wherever words and sound are compared (`asr.unspaced`).
    """
    return " ".join(text[: _end_of_said(text, share)].split())


def words_after(text: str, share: float) -> str:
    """Return the remaining words. `words_until` and these words together are the whole text."""
    return " ".join(text[_end_of_said(text, share) :].split())


def _end_of_said(text: str, share: float) -> int:
    """Return where the last word ends that was said."""
    ends = [0, *word_ends(text)]
    words = len(ends) - 1
    return ends[min(words, int(words * share + _NEARLY))]
