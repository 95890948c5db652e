"""Measures the jitter of a talkspurt: the times between its packets compared with their 20 ms of sound. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rehearsal.discord.media.arrivals import PacketArrival

FRAME_S = 0.02
_SEQUENCES = 0x1_0000


def talkspurts(arrivals: Iterable[PacketArrival]) -> list[list[PacketArrival]]:
    """Split one sender's packets into talkspurts at silence frames. A pause after a silence frame is not jitter."""
    spurts: list[list[PacketArrival]] = [[]]
    for arrival in arrivals:
        if arrival.silence:
            if spurts[-1]:
                spurts.append([])
        else:
            spurts[-1].append(arrival)
    return [spurt for spurt in spurts if len(spurt) > 1]


def jitter_ms(spurts: Iterable[Sequence[PacketArrival]]) -> list[float]:
    """Return the deviation of each packet's distance from the previous packet, in milliseconds.

    A receiver has to buffer against this deviation. It is RFC 3550's |D(i-1, i)|, unsmoothed.
    """
    return [
        1000 * abs(after.at - before.at - FRAME_S * _steps(before, after))
        for spurt in spurts
        for before, after in pairwise(spurt)
    ]


def lateness_ms(spurts: Iterable[Sequence[PacketArrival]]) -> Iterator[float]:
    """Yield how many milliseconds late each packet came, relative to the most punctual packet of its talkspurt."""
    for spurt in spurts:
        due, drifts = 0, []
        for before, after in pairwise(spurt):
            due += _steps(before, after)
            drifts.append(after.at - FRAME_S * due)
        first = min((spurt[0].at, *drifts))
        yield from (1000 * (drift - first) for drift in drifts)


def _steps(before: PacketArrival, after: PacketArrival) -> int:
    """Return how many frames lie between two packets. The result is negative if they arrived in the wrong order."""
    return (after.sequence - before.sequence + _SEQUENCES // 2) % _SEQUENCES - _SEQUENCES // 2
