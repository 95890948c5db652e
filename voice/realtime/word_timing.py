"""How many words belong to how much sound. The protocol sends words before their sound and without timings. Pure."""

from __future__ import annotations

# The usual rate of English speech-to-speech voices at their default speed.
WORDS_A_SECOND = 2.8


def words_within(sound_s: float) -> int:
    """Return about how many words are said in so many seconds of sound."""
    return round(sound_s * WORDS_A_SECOND)
