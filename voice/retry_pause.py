"""How long to wait before a service that fails is tried again. Pure."""

from __future__ import annotations

# Every pause has its longest by then. Two to the power of a week's failures is no number any more.
_MOST_DOUBLINGS = 16


def retry_pause_s(failures: int, *, first_s: float, longest_s: float) -> float:
    """Return the pause after so many failures in a row: `first_s` after the first, then twice as long each time, and
    `longest_s` at most. 0 failures: half of `first_s`, for a service that worked and has gone.
    """
    return min(first_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), longest_s)
