"""A jitter buffer: puts one stream's packets in order, drops duplicates, and reports gaps for concealment.

A pure state machine over (packet, now). It decides order, loss, and where a talkspurt begins and ends; it does not
decode. This sound is not played in real time, so packets in order are released at once, and only a gap waits: 60 ms of
latency where a packet is missing, none otherwise.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from voice.transport.opus import SILENCE_FRAME

# Opus over RTP always counts 48 kHz (RFC 7587, section 4.1).
CLOCK_HZ = 48_000
FRAME_TICKS = 960
# RFC 6716: the longest Opus packet, 120 ms.
_LONGEST_FRAME_TICKS = 5760

# Discord's clients send five silence frames at the end of a talkspurt.
_SILENCE_FRAMES_AT_END = 5
# RFC 3550, appendix A.1 (MAX_DROPOUT): a jump beyond this is a sender that started anew, not loss.
_LONGEST_JUMP = 3000
# A sender that was quiet this long may number its packets as it likes; no duplicate is this old.
_RESTART_QUIET_S = 2.0
# Sounds as much as anybody's clock may say before the arrival, or after it, before the time line is set anew:
# 50 ppm of drift make 180 ms in an hour of one open microphone.
_EARLIEST_S = -0.1
_LATEST_S = 1.0
# More waiting than this is no reordering any more (1.3 s).
_CAPACITY = 64
_REMEMBERED = 128


class PushResult(StrEnum):
    """What became of a pushed packet. All but `ACCEPTED` name the packet counter that it adds to."""

    ACCEPTED = "accepted"
    LATE = "late"
    DUPLICATE = "duplicate"
    SILENCE = "silence"


@dataclass(frozen=True, slots=True)
class OrderedFrame:
    """The next frame in order. `captured_at`: its start on the speaker's own time line."""

    payload: bytes
    captured_at: float
    ticks: int


@dataclass(frozen=True, slots=True)
class MissingFrame:
    """A lost frame. `next_payload`: the packet after it, which may carry a copy (FEC)."""

    captured_at: float
    ticks: int
    next_payload: bytes | None


@dataclass(frozen=True, slots=True)
class SpurtEnded:
    """The talkspurt is over. `at`: the end of its last sound on the speaker's time line."""

    at: float


Released: TypeAlias = OrderedFrame | MissingFrame | SpurtEnded


@dataclass(frozen=True, slots=True)
class _Packet:
    timestamp: int
    ticks: int
    payload: bytes
    arrived_at: float


@dataclass(slots=True)
class _Spurt:
    """The talkspurt under way: where its time line hangs, and what comes next."""

    origin_at: float
    origin_timestamp: int
    next_timestamp: int
    silent_frames: int = 0

    def at(self, timestamp: int) -> float:
        return self.origin_at + _ticks_between(self.origin_timestamp, timestamp) / CLOCK_HZ

    @property
    def ends_at(self) -> float:
        return self.at(self.next_timestamp)


class JitterBuffer:
    """The buffer of one SSRC. Not thread-safe. `lost` counts missing sequence numbers."""

    def __init__(self, *, hold_s: float = 0.06, silence_s: float = 0.2, max_concealed: int = 5) -> None:
        """`hold_s`: how long a gap waits. `silence_s`: without a packet so long, the talkspurt is over.

        `max_concealed`: how many frames of one gap are named as `MissingFrame`; the rest stays a hole in the time line.
        """
        self.lost = 0
        self._hold_s = hold_s
        self._silence_s = silence_s
        self._max_concealed = max_concealed
        self._waiting: dict[int, _Packet] = {}
        self._spurt: _Spurt | None = None
        self._next: int | None = None  # unwrapped sequence number whose turn it is
        self._highest = 0
        self._last_arrival = float("-inf")  # of a packet that was accepted
        self._last_push = float("-inf")  # of any
        self._released: deque[int] = deque(maxlen=_REMEMBERED)
        self._restart_at: int | None = None

    def has(self, sequence: int) -> bool:
        """Return whether this packet came already (and is waiting, or was released not long ago).

        Asked before a copy is decrypted: an end-to-end nonce is accepted once, so a copy looks like a failure.
        """
        place = self._unwrap(sequence)
        return place in self._waiting or place in self._released

    def push(
        self, sequence: int, timestamp: int, payload: bytes, *, arrived_at: float, ticks: int = FRAME_TICKS
    ) -> PushResult:
        """Take one packet. `sequence`: 16 bit, `timestamp`: 32 bit, as sent; `ticks`: how long it sounds."""
        place = self._unwrap(sequence)
        restarts = self._next is not None and place < self._next and self._restarts(place, arrived_at)
        self._last_push = arrived_at
        if self._next is not None and place < self._next:
            if not restarts:
                return PushResult.DUPLICATE if place in self._released else PushResult.LATE
            # The new numbering goes on after the old one: a jump, which is not counted as loss.
            place += 0x1_0000
        if place in self._waiting:
            return PushResult.DUPLICATE
        self._restart_at = None
        self._highest = max(self._highest, place)
        self._last_arrival = max(self._last_arrival, arrived_at)
        if payload == SILENCE_FRAME and self._spurt is None and not self._waiting:
            self._skip_to(place)
            self._take(place)
            return PushResult.SILENCE
        self._waiting[place] = _Packet(timestamp, ticks, payload, arrived_at)
        return PushResult.ACCEPTED

    def release(self, now: float) -> list[Released]:
        """Return everything that is due."""
        return self._release(now, force=False)

    def close(self) -> list[Released]:
        """Return what is still waiting, and the end of the talkspurt: nothing more will come."""
        out = self._release(float("inf"), force=True)
        self._waiting.clear()
        return out

    def discard(self) -> int:
        """Drop all waiting packets; return how many."""
        dropped = len(self._waiting)
        self._waiting.clear()
        self._spurt = None
        self._next = None
        return dropped

    @property
    def talking(self) -> bool:
        """Return whether a talkspurt is under way."""
        return self._spurt is not None

    @property
    def deadline(self) -> float | None:
        """Return when to call `release` even if nothing arrives, or None."""
        if self._waiting:
            return self._oldest() + self._hold_s
        return self._last_arrival + self._silence_s if self._spurt is not None else None

    def _release(self, now: float, *, force: bool) -> list[Released]:
        out: list[Released] = []
        while self._waiting:
            place = min(self._waiting)
            packet = self._waiting[place]
            in_turn = place == self._next
            patient = not force and len(self._waiting) < _CAPACITY and now < self._oldest() + self._hold_s
            if not in_turn and patient:
                return out
            if self._spurt is None:
                self._skip_to(place)
                self._begin(packet)
            elif not in_turn:
                self._bridge(place, packet, out)
            spurt = self._continued(packet, out)
            del self._waiting[place]
            self._take(place)
            out.append(OrderedFrame(packet.payload, spurt.at(packet.timestamp), packet.ticks))
            spurt.next_timestamp = (packet.timestamp + packet.ticks) & 0xFFFF_FFFF
            spurt.silent_frames = spurt.silent_frames + 1 if packet.payload == SILENCE_FRAME else 0
            if spurt.silent_frames >= _SILENCE_FRAMES_AT_END:
                self._end(out)
        if self._spurt is not None and (force or now >= self._last_arrival + self._silence_s):
            self._end(out)
        return out

    def _unwrap(self, sequence: int) -> int:
        """Return the sequence number counted on past 2^16, nearest to the highest seen."""
        if self._next is None and not self._waiting:
            self._highest = sequence
        return self._highest + ((sequence - self._highest + 0x8000) & 0xFFFF) - 0x8000

    def _restarts(self, place: int, arrived_at: float) -> bool:
        """Return whether a packet from behind is a sender's new numbering.

        After a long quiet it is; else two far behind, in a row, say so (RFC 3550, appendix A.1).
        """
        assert self._next is not None
        if not self.talking and not self._waiting and arrived_at > self._last_push + _RESTART_QUIET_S:
            return True
        if self._next - place <= _LONGEST_JUMP:
            return False
        if place == self._restart_at:
            return True
        self._restart_at = place + 1
        return False

    def _oldest(self) -> float:
        return min(packet.arrived_at for packet in self._waiting.values())

    def _take(self, place: int) -> None:
        self._released.append(place)
        self._next = place + 1

    def _skip_to(self, place: int) -> None:
        """Go on at `place`, and count what is missing before it."""
        if self._next is not None and place - self._next <= _LONGEST_JUMP:
            self.lost += place - self._next
        self._next = place

    def _begin(self, first: _Packet) -> None:
        """Hang the time line on the first packet, as early as any that came with it says."""
        origin_at = min(
            packet.arrived_at - max(0, _ticks_between(first.timestamp, packet.timestamp)) / CLOCK_HZ
            if abs(_ticks_between(first.timestamp, packet.timestamp)) < CLOCK_HZ
            else first.arrived_at
            for packet in self._waiting.values()
        )
        self._spurt = _Spurt(origin_at, first.timestamp, first.timestamp)

    def _continued(self, packet: _Packet, out: list[Released]) -> _Spurt:
        """Return the talkspurt that `packet` belongs to: another one when its timestamp jumped."""
        assert self._spurt is not None
        jump = _ticks_between(self._spurt.next_timestamp, packet.timestamp)
        if abs(jump) >= packet.ticks:
            # In sequence, yet later: the sender paused and did not say so. That is no loss.
            self._end(out)
            self._begin(packet)
        elif jump:
            self._spurt.origin_timestamp = (self._spurt.origin_timestamp + jump) & 0xFFFF_FFFF
        spurt = self._spurt
        lateness = packet.arrived_at - spurt.at(packet.timestamp)
        if not _EARLIEST_S <= lateness <= _LATEST_S:
            spurt.origin_at += lateness
        return spurt

    def _bridge(self, place: int, packet: _Packet, out: list[Released]) -> None:
        """Give up waiting for what lies before `place`, and name as much of it as may be concealed."""
        assert self._spurt is not None
        assert self._next is not None
        missing = place - self._next
        self._skip_to(place)
        spurt = self._spurt
        ticks, rest = divmod(_ticks_between(spurt.next_timestamp, packet.timestamp), missing)
        frames_fit = rest == 0 and 0 < ticks <= _LONGEST_FRAME_TICKS
        if not frames_fit or missing * ticks >= self._silence_s * CLOCK_HZ:
            # The end of one talkspurt and the start of the next were lost together.
            self._end(out)
            self._begin(packet)
            return
        first = spurt.next_timestamp
        for index in range(missing):
            last = index == missing - 1
            if last or index < self._max_concealed - 1:
                at = spurt.at(first + index * ticks)
                out.append(MissingFrame(at, ticks, packet.payload if last else None))
        if spurt.silent_frames:
            spurt.silent_frames += missing
        spurt.next_timestamp = packet.timestamp

    def _end(self, out: list[Released]) -> None:
        assert self._spurt is not None
        out.append(SpurtEnded(self._spurt.ends_at))
        self._spurt = None


def _ticks_between(earlier: int, later: int) -> int:
    """Return `later - earlier` of two 32-bit timestamps, the short way round."""
    return ((later - earlier + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000
