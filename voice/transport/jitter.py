"""A jitter buffer: puts one stream's packets in order, drops duplicates, and reports gaps for concealment.

A pure state machine over (packet, now). It decides order, loss, and where a talkspurt begins and ends; it does not
decode. Received sound is not played in real time, so packets in order are released at once and only gaps wait. A
missing packet adds 60 ms of latency; otherwise the buffer adds none.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from voice.transport.opus import SILENCE_FRAME
from voice.transport.talkspurt_clock import CLOCK_HZ, TalkspurtClock, is_plausible, ticks_between

FRAME_TICKS = 960
# RFC 6716: the shortest Opus packet, 2.5 ms, and the longest, 120 ms.
_SHORTEST_FRAME_TICKS = 120
_LONGEST_FRAME_TICKS = 5760

# How long a gap waits.
_HOLD_S = 0.06
# A talkspurt ends after this time without a packet.
_SILENCE_S = 0.2
# How many frames of one gap are reported as `MissingFrame`; the rest stays a hole in the time line.
_MAX_CONCEALED = 5
# Discord's clients send five silence frames at the end of a talkspurt.
_SILENCE_FRAMES_AT_END = 5
# RFC 3550, appendix A.1 (MAX_DROPOUT): a larger jump means a restarted sender, not loss.
_LONGEST_JUMP = 3000
# RFC 3550, appendix A.1 (MAX_MISORDER): a packet further behind is no late one; the next one decides.
_LATEST_PACKETS = 100
# Two packets of a new numbering may overtake each other, and one of them may be lost.
_NEIGHBOURS = 3
# After this much silence a sender may number its packets anew; no duplicate is this old.
_RESTART_QUIET_S = 2.0
# If more packets than this are waiting (1.3 s of sound), reordering is not the cause.
_CAPACITY = 64
_REMEMBERED = 128


class PushResult(StrEnum):
    """The result of `JitterBuffer.push`. `LATE`, `DUPLICATE` and `SILENCE` name the packet counter that they add to."""

    ACCEPTED = "accepted"
    LATE = "late"
    DUPLICATE = "duplicate"
    SILENCE = "silence"
    UNDECIDED = "undecided"  # far behind: kept until the next packet tells whether the sender numbers anew


@dataclass(frozen=True, slots=True)
class OrderedFrame:
    """The next frame in order. `captured_at`: its start on the speaker's own time line."""

    payload: bytes
    captured_at: float
    ticks: int


@dataclass(frozen=True, slots=True)
class MissingFrame:
    """A lost frame. `next_payload`: the packet after it, which may carry a copy of it (FEC)."""

    captured_at: float
    ticks: int
    next_payload: bytes | None


@dataclass(frozen=True, slots=True)
class SpurtEnded:
    """The talkspurt has ended. `at`: the end of its last sound on the speaker's time line."""

    at: float


Released: TypeAlias = OrderedFrame | MissingFrame | SpurtEnded


@dataclass(frozen=True, slots=True)
class _Packet:
    name: int  # sequence and timestamp as sent
    timestamp: int
    ticks: int
    payload: bytes
    arrived_at: float


class JitterBuffer:
    """The buffer of one SSRC. Not thread-safe.

    `lost` counts missing sequence numbers, `late` the packets that were undecided and then given up.
    """

    def __init__(self) -> None:
        self.lost = 0
        self.late = 0
        self._waiting: dict[int, _Packet] = {}
        self._spurt: TalkspurtClock | None = None
        self._next: int | None = None  # unwrapped sequence number whose turn it is
        self._highest = 0
        self._last_arrival = float("-inf")  # of a packet that was accepted
        self._last_push = float("-inf")  # of any
        self._newest = (0, 0, FRAME_TICKS)  # place, timestamp and ticks of the packet released last
        # What was released lately, as sent: sequence and timestamp together, because a sender may number anew.
        self._released: deque[int] = deque()
        self._known: set[int] = set()
        self._undecided: tuple[int, _Packet] | None = None

    def has(self, sequence: int, timestamp: int, *, arrived_at: float) -> bool:
        """Return whether this packet is the copy of one that waits, or was released recently.

        Call it before decrypting: an end-to-end nonce is accepted once, so decrypting a duplicate would count as a
        failure. After a long silence it is no copy, but a sender who begins with numbers that were heard before.
        """
        return sequence << 32 | timestamp in self._known and arrived_at <= self._last_push + _RESTART_QUIET_S

    def push(
        self, sequence: int, timestamp: int, payload: bytes, *, arrived_at: float, ticks: int = FRAME_TICKS
    ) -> PushResult:
        """Add one packet. `sequence` (16 bit) and `timestamp` (32 bit) as sent; `ticks`: its duration at 48 kHz.

        An empty `payload` uses up its number without sound: a packet that is nothing but padding.
        """
        name = sequence << 32 | timestamp
        if self.has(sequence, timestamp, arrived_at=arrived_at):
            return PushResult.DUPLICATE
        if arrived_at > self._last_push + _RESTART_QUIET_S:
            self._known.clear()
            self._released.clear()
        place = self._unwrap(sequence)
        result = PushResult.ACCEPTED
        if payload == SILENCE_FRAME and self._is_repeated(place, timestamp):
            payload, result = b"", PushResult.SILENCE
        packet = _Packet(name, timestamp, ticks, payload, arrived_at)
        behind = 0 if self._next is None else self._next - place
        if behind > 0:
            if not payload:
                return PushResult.LATE
            if not self._renumbered(place, packet):
                return self._keep_undecided(place, packet, behind)
            # Put the new numbering after the old one. This is a jump, which is not counted as loss.
            place += 0x1_0000
            if self._undecided is not None and abs(self._undecided[0] + 0x1_0000 - place) <= _NEIGHBOURS:
                (earlier, kept), self._undecided = self._undecided, None
                self._add(earlier + 0x1_0000, kept)
        if place in self._waiting:
            return PushResult.DUPLICATE
        self._last_push = arrived_at
        if self._undecided is not None:
            self._give_up_undecided()
        if not self._waiting and self._spurt is None and (not payload or payload == SILENCE_FRAME):
            self._highest = max(self._highest, place)
            if payload:
                self._last_arrival = max(self._last_arrival, arrived_at)
            self._count_missing(place)
            self._take(place, packet)
            return PushResult.SILENCE
        self._add(place, packet)
        return result

    def pass_on(
        self, sequence: int, timestamp: int, payload: bytes, *, arrived_at: float, ticks: int = FRAME_TICKS
    ) -> float | None:
        """Take the packet whose turn it is in a running talkspurt, and return its start on the speaker's time line.

        That is what happens to nearly every packet, with the same result as `push` and `release`, in a fraction of the
        time. Returns None and changes nothing if it is any other packet; then `push` and `release` are to be called.
        """
        spurt, place = self._spurt, self._next
        if spurt is None or place is None or self._waiting or self._undecided is not None:
            return None
        if place & 0xFFFF != sequence or spurt.next_timestamp != timestamp or not payload or payload == SILENCE_FRAME:
            return None
        at = spurt.at(timestamp)
        if not is_plausible(at, arrived_at) or arrived_at < self._last_arrival:
            return None
        self._remember(sequence << 32 | timestamp)
        self._next = place + 1
        # While nothing waits, all others have lower numbers than the next.
        self._highest = place
        self._newest = place, timestamp, ticks
        self._last_arrival = self._last_push = arrived_at
        spurt.advance(timestamp, ticks, is_silence=False)
        return at

    def close(self) -> list[Released]:
        """Release all waiting packets and end the talkspurt, because no more packets will come."""
        out = self.release(float("inf"), force=True)
        self._waiting.clear()
        self._give_up_undecided()
        return out

    def discard(self) -> int:
        """Drop all waiting packets; return their number."""
        dropped = sum(bool(packet.payload) for packet in self._waiting.values()) + (self._undecided is not None)
        self._waiting.clear()
        self._undecided = None
        self._spurt = None
        self._next = None
        return dropped

    @property
    def talking(self) -> bool:
        return self._spurt is not None

    @property
    def deadline(self) -> float | None:
        """The time to call `release` even if nothing arrives; None if there is none."""
        if self._waiting:
            return self._oldest() + _HOLD_S
        return self._last_arrival + _SILENCE_S if self._spurt is not None else None

    def release(self, now: float, *, force: bool = False) -> list[Released]:
        """Return everything that is due; `force`: everything that waits, and the end of the talkspurt."""
        out: list[Released] = []
        while self._waiting:
            place = min(self._waiting)
            packet = self._waiting[place]
            in_turn = place == self._next
            patient = not force and len(self._waiting) < _CAPACITY and now < self._oldest() + _HOLD_S
            if not in_turn and patient:
                return out
            if not packet.payload:
                self._count_missing(place)
                del self._waiting[place]
                self._take(place, packet)
                continue
            if self._spurt is None:
                self._count_missing(place)
                self._begin(packet)
            elif not in_turn:
                self._bridge(place, packet, out)
            spurt = self._continued(packet, out)
            del self._waiting[place]
            self._take(place, packet)
            out.append(OrderedFrame(packet.payload, spurt.at(packet.timestamp), packet.ticks))
            spurt.advance(packet.timestamp, packet.ticks, is_silence=packet.payload == SILENCE_FRAME)
            if spurt.silent_frames >= _SILENCE_FRAMES_AT_END:
                self._end(out)
        if self._spurt is not None and (force or now >= self._last_arrival + _SILENCE_S):
            self._end(out)
        return out

    def _unwrap(self, sequence: int) -> int:
        """Return `sequence` extended beyond 16 bits: the number nearest to the highest seen."""
        if self._next is None and not self._waiting:
            self._highest = sequence
        return self._highest + ((sequence - self._highest + 0x8000) & 0xFFFF) - 0x8000

    def _renumbered(self, place: int, packet: _Packet) -> bool:
        """Return whether a packet behind the current number means that the sender has begun to number anew.

        After a long silence it does at once, and after the end of a talkspurt if its timestamp is a new one. Otherwise
        two packets next to each other must say so (RFC 3550, appendix A.1).
        """
        resting = self._spurt is None and not self._waiting
        if resting and packet.arrived_at > self._last_push + _RESTART_QUIET_S:
            return True
        if resting and self._is_off_line(place, packet) and ticks_between(self._newest[1], packet.timestamp) > 0:
            return True
        earlier = self._undecided
        return earlier is not None and abs(earlier[0] - place) <= _NEIGHBOURS

    def _keep_undecided(self, place: int, packet: _Packet, behind: int) -> PushResult:
        """Keep a packet that may be the first of a new numbering. All others are late.

        Close behind it may be one if it does not fit the old numbering: in speech only if it is also newer, because
        packets from before a pause fit none of what comes after it.
        """
        resting = self._spurt is None and not self._waiting
        newer = ticks_between(self._newest[1], packet.timestamp) > 0
        if behind <= _LATEST_PACKETS and not ((resting or newer) and self._is_off_line(place, packet)):
            self._last_push = packet.arrived_at
            return PushResult.LATE
        self._give_up_undecided()
        self._last_push = packet.arrived_at
        self._undecided = place, packet
        self._known.add(packet.name)
        return PushResult.UNDECIDED

    def _give_up_undecided(self) -> None:
        if self._undecided is not None:
            self._remember(self._undecided[1].name)
            self._undecided = None
            self.late += 1

    def _is_repeated(self, place: int, timestamp: int) -> bool:
        """Return whether a packet has a new number for a time that has passed, as in a burst of padded silence."""
        return self._next is not None and place > self._newest[0] and ticks_between(self._newest[1], timestamp) <= 0

    def _is_off_line(self, place: int, packet: _Packet) -> bool:
        """Return whether sequence and timestamp cannot both belong to the numbering of the packet released last."""
        last_place, last_timestamp, ticks = self._newest
        expected = (place - last_place) * ticks
        return abs(ticks_between(last_timestamp, packet.timestamp) - expected) >= ticks

    def _add(self, place: int, packet: _Packet) -> None:
        self._waiting[place] = packet
        self._known.add(packet.name)
        self._highest = max(self._highest, place)
        if packet.payload:
            self._last_arrival = max(self._last_arrival, packet.arrived_at)

    def _oldest(self) -> float:
        return min(packet.arrived_at for packet in self._waiting.values())

    def _take(self, place: int, packet: _Packet) -> None:
        self._remember(packet.name)
        self._next = place + 1
        if packet.payload:
            self._newest = place, packet.timestamp, packet.ticks

    def _remember(self, name: int) -> None:
        self._known.add(name)
        self._released.append(name)
        if len(self._released) > _REMEMBERED:
            self._known.discard(self._released.popleft())

    def _count_missing(self, place: int) -> None:
        """Count the packets missing before `place` as lost."""
        if self._next is not None and place - self._next <= _LONGEST_JUMP:
            self.lost += place - self._next

    def _begin(self, first: _Packet) -> None:
        waiting = [(packet.timestamp, packet.arrived_at) for packet in self._waiting.values()]
        self._spurt = TalkspurtClock.begin(first.timestamp, first.arrived_at, waiting)

    def _continued(self, packet: _Packet, out: list[Released]) -> TalkspurtClock:
        """Return the talkspurt of `packet`. A jump in its timestamp starts a new one."""
        assert self._spurt is not None
        jump = ticks_between(self._spurt.next_timestamp, packet.timestamp)
        if abs(jump) >= packet.ticks:
            # The sequence continues but the timestamp jumped: the sender paused without silence frames. Nothing was
            # lost.
            self._end(out)
            self._begin(packet)
        elif jump:
            self._spurt.shift(jump)
        self._spurt.fit(packet.timestamp, packet.arrived_at)
        return self._spurt

    def _bridge(self, place: int, packet: _Packet, out: list[Released]) -> None:
        """Stop waiting for the packets before `place`, and report those that may be concealed."""
        assert self._spurt is not None
        assert self._next is not None
        missing = place - self._next
        self._count_missing(place)
        spurt = self._spurt
        ticks, rest = divmod(ticks_between(spurt.next_timestamp, packet.timestamp), missing)
        frames_fit = rest == 0 and _SHORTEST_FRAME_TICKS <= ticks <= _LONGEST_FRAME_TICKS
        if not frames_fit or missing * ticks >= _SILENCE_S * CLOCK_HZ:
            # The packets between the end of one talkspurt and the start of the next were lost.
            self._end(out)
            self._begin(packet)
            return
        first = spurt.next_timestamp
        for index in range(missing):
            last = index == missing - 1
            if last or index < _MAX_CONCEALED - 1:
                at = spurt.at(first + index * ticks)
                out.append(MissingFrame(at, ticks, packet.payload if last else None))
        if spurt.silent_frames:
            spurt.silent_frames += missing
        spurt.next_timestamp = packet.timestamp

    def _end(self, out: list[Released]) -> None:
        assert self._spurt is not None
        out.append(SpurtEnded(self._spurt.ends_at))
        self._spurt = None
