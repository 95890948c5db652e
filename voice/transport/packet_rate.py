"""Limits how many packets of one sender are worked on in a second. Pure.

The voice server passes on whatever a modified client sends, and end-to-end decryption and Opus cost the most of a
packet: 5,000 a second of one client would take a third of a core from everybody else.
"""

from __future__ import annotations

from collections import Counter

# Clients send 50. The shortest frames that Opus has, 2.5 ms, are 400, and a network that stood still for some seconds
# brings everything at once.
MOST_PER_S = 500


class PacketRate:
    """Counts the packets of each SSRC in the current second. What it keeps is no more than the packets of a second."""

    def __init__(self) -> None:
        self._since = float("-inf")
        self._counts: Counter[int] = Counter()

    def take(self, ssrc: int, now: float) -> bool:
        """Count a packet. Return whether its sender has not sent too many. `now`: monotonic seconds."""
        if not self._since <= now < self._since + 1.0:
            self._since = now
            self._counts.clear()
        self._counts[ssrc] += 1
        return self._counts[ssrc] <= MOST_PER_S
