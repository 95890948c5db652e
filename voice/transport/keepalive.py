"""Keeps the UDP path open in both directions, and notices when it is not. Pure.

A NAT forgets a mapping over which nothing leaves, and then drops whatever comes for it: Linux and Docker after 30 s
(nf_conntrack_udp_timeout), home routers from 20 s on. Who listens and says nothing sends nothing else.
`@discordjs/voice` sends the same datagram at the same intervals.

Some of Discord's servers send the datagram back and some do not (discordjs/discord.js#9185, #9202). So silence means
something only on a connection on which an echo came before.
"""

from __future__ import annotations

import struct
import threading

KEEPALIVE_BYTES = 8
KEEPALIVE_EVERY_S = 5.0
# After a keepalive without an echo the next one follows so soon. An echo takes a round trip.
_PROBE_EVERY_S = 1.0
# So many keepalives without an echo, and nothing else received meanwhile: the path is dead. Together with the interval
# this is nine seconds at most.
_MOST_UNANSWERED = 4


class Keepalive:
    """The keepalives of one connection. `echoed` may be called from another thread. Times are monotonic seconds.

    `round_trip_s`: how long the last echo took; None if none has come.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counter = 0
        self._sent_at: dict[bytes, float] = {}
        self._due_at = float("-inf")
        self._answers = False
        self._open_at = float("-inf")
        self._received = 0
        self.round_trip_s: float | None = None

    def probe(self) -> None:
        """Let the next keepalive be due at once."""
        self._due_at = float("-inf")

    def due(self, now: float, *, received: int) -> bytes | None:
        """Return the datagram to send now, or None. `received`: how many other datagrams have come so far."""
        with self._lock:
            if received != self._received:
                # Whatever comes shows that the path is open.
                self._received = received
                self._open_at = now
            if now < self._due_at:
                return None
            self._counter = (self._counter + 1) & 0xFFFF_FFFF
            datagram = struct.pack("<II", self._counter, 0)
            self._sent_at[datagram] = now
            if len(self._sent_at) > 2 * _MOST_UNANSWERED:
                del self._sent_at[next(iter(self._sent_at))]
            self._due_at = now + (_PROBE_EVERY_S if self._answers else KEEPALIVE_EVERY_S)
            return datagram

    def echoed(self, datagram: bytes, now: float) -> bool:
        """Handle a datagram of `KEEPALIVE_BYTES` from the voice server. Returns whether it is an echo."""
        with self._lock:
            sent_at = self._sent_at.pop(datagram, None)
            if sent_at is None:
                return False
            self.round_trip_s = now - sent_at
            self._answers = True
            self._open_at = now
            self._due_at = sent_at + KEEPALIVE_EVERY_S
            return True

    def dead(self, now: float) -> bool:
        """Whether a server that used to answer answers nothing any more."""
        with self._lock:
            overdue = [sent for sent in self._sent_at.values() if self._open_at < sent <= now - _PROBE_EVERY_S]
            return self._answers and len(overdue) >= _MOST_UNANSWERED
