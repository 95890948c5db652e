"""The time line of one talkspurt: when the speaker said what a packet holds, from its RTP timestamp.

Pure values. Arrival times have the network's jitter in them; timestamps are exact, but count from an unknown origin. So
the first packets of a talkspurt give its origin, and the timestamps everything after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Opus over RTP always counts 48 kHz (RFC 7587, section 4.1).
CLOCK_HZ = 48_000

# A packet may arrive this much before or after its time on the time line. Beyond that the origin is moved: clocks
# drift, and 50 ppm make 180 ms in an hour of one open microphone.
_EARLIEST_S = -0.1
_LATEST_S = 1.0


@dataclass(slots=True)
class TalkspurtClock:
    """The time line of the current talkspurt. Times are seconds of the arrivals' clock.

    `origin_at` and `origin_timestamp`: one point of the line. `next_timestamp`: where the next packet should begin.
    `silent_frames`: how many silence frames came last.
    """

    origin_at: float
    origin_timestamp: int
    next_timestamp: int
    silent_frames: int = 0

    @classmethod
    def begin(cls, timestamp: int, arrived_at: float, waiting: Iterable[tuple[int, float]]) -> TalkspurtClock:
        """Return a talkspurt whose first packet has this timestamp and arrival.

        `waiting`: timestamp and arrival of all packets that are there already. The origin is the earliest start that
        any of them allows.
        """
        origin_at = min(
            at - max(0, ticks_between(timestamp, other)) / CLOCK_HZ
            if abs(ticks_between(timestamp, other)) < CLOCK_HZ
            else arrived_at
            for other, at in waiting
        )
        return cls(origin_at, timestamp, timestamp)

    def at(self, timestamp: int) -> float:
        """Return when the sound with this timestamp began."""
        return self.origin_at + ticks_between(self.origin_timestamp, timestamp) / CLOCK_HZ

    @property
    def ends_at(self) -> float:
        """Return the end of the last sound so far."""
        return self.at(self.next_timestamp)

    def shift(self, ticks: int) -> None:
        """Let the sender's timestamps jump by so many ticks without time passing."""
        self.origin_timestamp = (self.origin_timestamp + ticks) & 0xFFFF_FFFF

    def fit(self, timestamp: int, arrived_at: float) -> None:
        """Move the origin if a packet arrives far from its time."""
        at = self.at(timestamp)
        if not is_plausible(at, arrived_at):
            self.origin_at += arrived_at - at

    def advance(self, timestamp: int, ticks: int, *, is_silence: bool) -> None:
        """Take the packet with this timestamp and duration as the last one."""
        self.next_timestamp = (timestamp + ticks) & 0xFFFF_FFFF
        self.silent_frames = self.silent_frames + 1 if is_silence else 0


def is_plausible(at: float, arrived_at: float) -> bool:
    """Return whether sound that began at `at` may have arrived at `arrived_at` if the time line is right."""
    return _EARLIEST_S <= arrived_at - at <= _LATEST_S


def ticks_between(earlier: int, later: int) -> int:
    """Return `later - earlier` of two 32-bit timestamps, allowing for wrap-around."""
    return ((later - earlier + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000
