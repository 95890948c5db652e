"""Detects and removes repetition loops in recognised text.

Whisper rarely loops on a short window; when it does, the text before the loop is worth keeping. Only a text that
reached its token cap is changed, because people repeat themselves too.
"""

from __future__ import annotations

import zlib

# The longest phrase that was seen to loop. A whole sentence fits twice into the cap.
LONGEST_PHRASE_WORDS = 40
# Nobody repeats this many words exactly, so the repetition of a longer phrase may break off after them.
SURELY_REPEATED_WORDS = 8
# 'No, no' is no loop.
FEWEST_REPEATED_WORDS = 2


def compression_ratio(text: str) -> float:
    """Return the compression ratio of `text`. Above 2.4 the text repeats itself (Whisper's own measure)."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw))


def remove_repetition(text: str) -> str:
    """Return `text` with the repeated phrase at its end kept once. The last repetition may be cut off.

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
    """Return how many words to keep if the text ends with a repeated phrase of `length` words, else None."""
    end = len(keys)
    if keys[-1] != keys[-1 - length] and keys[-1 - length].startswith(keys[-1]):
        end -= 1  # the cap broke the last word off
    start = end
    while start > length and keys[start - 1] == keys[start - 1 - length]:
        start -= 1
    return start if end - start >= max(FEWEST_REPEATED_WORDS, min(length, SURELY_REPEATED_WORDS)) else None
