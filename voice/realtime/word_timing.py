"""How many words belong to how much sound. The protocol sends words before their sound and without timings. Pure."""

from __future__ import annotations

from itertools import islice

from voice.asr.unspaced import word_ends

# The usual rate of English speech-to-speech voices at their default speed.
WORDS_A_SECOND = 2.8


def words_within(sound_s: float) -> int:
    """Return about how many words are said in so many seconds of sound."""
    return round(sound_s * WORDS_A_SECOND)


def words_heard(text: str, sound_s: float) -> str:
    """Return about the beginning of `text` that is said in its first `sound_s` seconds, with single spaces."""
    words = " ".join(text.split())
    ends = [0, *islice(word_ends(words), words_within(sound_s))]
    return words[: ends[-1]]
