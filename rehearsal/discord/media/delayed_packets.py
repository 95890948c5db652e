"""The delayed packets of one speaker to one receiver, as one schedule: they leave in the order of the recording. Pure.

With a timer for each, an event loop that stood still and then takes several packets at once would send the one with the
shortest delay first.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rehearsal.discord.media.stream_faults import TreatedPacket


class DelayedPackets:
    """What is still to be sent. `now`: any clock's seconds."""

    def __init__(self) -> None:
        # By time, then in the order of sending.
        self._waiting: list[tuple[float, int, TreatedPacket]] = []
        self._numbers = itertools.count()
        # The next packet is due then or later.
        self._earliest = -math.inf
        # Of each packet that others may overtake: how many more of them, and when it is due.
        self._overtaken: list[tuple[int, float]] = []

    @property
    def next_at(self) -> float | None:
        """Return when the next packet is due; None: nothing waits."""
        return self._waiting[0][0] if self._waiting else None

    def add(self, packet: TreatedPacket, now: float) -> None:
        """Have a packet wait for its delay, and for those that came before it in the recording."""
        self._earliest = max([self._earliest, *(due for others, due in self._overtaken if not others)])
        self._overtaken = [(others - 1, due) for others, due in self._overtaken if others]
        due = max(self._earliest, now + packet.delay_s)
        if packet.delay_s and packet.behind:
            self._overtaken.append((packet.behind, due))
        else:
            self._earliest = due
        heapq.heappush(self._waiting, (due, next(self._numbers), packet))

    def take_due(self, now: float) -> list[TreatedPacket]:
        """Return the packets that are due, in their order. They wait no more."""
        due: list[TreatedPacket] = []
        while self._waiting and self._waiting[0][0] <= now:
            due.append(heapq.heappop(self._waiting)[-1])
        return due
