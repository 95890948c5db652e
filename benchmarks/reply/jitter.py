"""How steady a talkspurt came: the times between its packets against the 20 ms they stand for. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rehearsal.discord.arrivals import PacketArrival

FRAME_S = 0.02
_SEQUENCES = 0x1_0000


def talkspurts(arrivals: Iterable[PacketArrival]) -> list[list[PacketArrival]]:
    """Cut one sender's packets into talkspurts: after a silence frame a pause may follow, and is no jitter."""
    spurts: list[list[PacketArrival]] = [[]]
    for arrival in arrivals:
        if arrival.silence:
            if spurts[-1]:
                spurts.append([])
        else:
            spurts[-1].append(arrival)
    return [spurt for spurt in spurts if len(spurt) > 1]


def jitter_ms(spurts: Iterable[Sequence[PacketArrival]]) -> list[float]:
    """Return by how much each packet's distance to the one before was off, in milliseconds.

    What a receiver has to buffer against: RFC 3550's |D(i-1, i)|, unsmoothed.
    """
    return [
        1000 * abs(after.at - before.at - FRAME_S * _steps(before, after))
        for spurt in spurts
        for before, after in pairwise(spurt)
    ]


def lateness_ms(spurts: Iterable[Sequence[PacketArrival]]) -> Iterator[float]:
    """Yield by how much each packet was later than the most timely one of its talkspurt, in milliseconds."""
    for spurt in spurts:
        due, drifts = 0, []
        for before, after in pairwise(spurt):
            due += _steps(before, after)
            drifts.append(after.at - FRAME_S * due)
        first = min((spurt[0].at, *drifts))
        yield from (1000 * (drift - first) for drift in drifts)


def _steps(before: PacketArrival, after: PacketArrival) -> int:
    """Return how many frames lie between two packets; less than nothing where they overtook each other."""
    return (after.sequence - before.sequence + _SEQUENCES // 2) % _SEQUENCES - _SEQUENCES // 2
