"""The recogniser's stutter: telling it, and undoing it in an answer that hit its token cap and repeats one phrase.

Whisper rarely falls into a loop on a short window; when it does, what was said stands before the loop and is worth
keeping. Only a capped answer is touched: people repeat themselves too.
"""

from __future__ import annotations

import zlib

# A whole sentence comes twice within the cap, said slowly; what is longer than this was never heard to.
LONGEST_PHRASE_WORDS = 40
# Nobody says so many words over again to the letter; of a longer phrase the repetition may be broken off after them.
SURELY_REPEATED_WORDS = 8
# 'No, no' is no loop.
FEWEST_REPEATED_WORDS = 2


def compression_ratio(text: str) -> float:
    """Return how far `text` compresses: over 2.4 it repeats itself (Whisper's own measure)."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw))


def remove_repetition(text: str) -> str:
    """Return `text` with the phrase that it ends in said once; the last repetition may be broken off.

    'Lobsters and lobsters Lobsters and lobsters Lobsters and lob' gives 'Lobsters and lobsters'.
    """
    words = text.split()
    keys = [word.strip(".,!?;:…").casefold() for word in words]
    for length in range(1, min(LONGEST_PHRASE_WORDS, len(words) - 1) + 1):
        kept = _before_repeats(keys, length)
        if kept is not None:
            return " ".join(words[:kept])
    return text


def _before_repeats(keys: list[str], length: int) -> int | None:
    """Return how many words remain when the closing repetitions of `length` words are one; None if there are none."""
    end = len(keys)
    if keys[-1] != keys[-1 - length] and keys[-1 - length].startswith(keys[-1]):
        end -= 1  # the cap broke the last word off
    start = end
    while start > length and keys[start - 1] == keys[start - 1 - length]:
        start -= 1
    return start if end - start >= max(FEWEST_REPEATED_WORDS, min(length, SURELY_REPEATED_WORDS)) else None
