"""The jitter buffer emits frames in order, once each, on one time line, and reports every gap."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.transport.jitter import JitterBuffer, MissingFrame, OrderedFrame, PushResult, Released, SpurtEnded
from voice.transport.opus import SILENCE_FRAME
from voice.transport.talkspurt_clock import CLOCK_HZ, TalkspurtClock, ticks_between

TICKS = 960


@dataclass
class Line:
    """A sender and a clock: packet n is captured at n * 20 ms and arrives when the test says."""

    jitter: JitterBuffer = field(default_factory=JitterBuffer)
    first_sequence: int = 65_500
    first_timestamp: int = 0xFFFF_F000
    out: list[Released] = field(default_factory=list)

    def arrive(self, n: int, at: float | None = None, *, payload: bytes | None = None, skew: int = 0) -> PushResult:
        at = n * 0.02 if at is None else at
        arrival = self.jitter.push(
            (self.first_sequence + n) & 0xFFFF,
            (self.first_timestamp + n * TICKS + skew) & 0xFFFF_FFFF,
            struct.pack(">I", n) if payload is None else payload,
            arrived_at=at,
        )
        self.out += self.jitter.release(at)
        return arrival

    def wait(self, until: float) -> None:
        self.out += self.jitter.release(until)

    def frames(self) -> list[int]:
        return [
            struct.unpack(">I", item.payload)[0]
            for item in self.out
            if isinstance(item, OrderedFrame) and item.payload != SILENCE_FRAME
        ]

    def gaps(self) -> list[MissingFrame]:
        return [item for item in self.out if isinstance(item, MissingFrame)]

    def ends(self) -> list[float]:
        return [item.at for item in self.out if isinstance(item, SpurtEnded)]


@pytest.fixture
def line() -> Line:
    """A line without packets."""
    return Line()


def test_packets_in_their_turn_do_not_wait(line: Line) -> None:
    """Only the very first packet waits, because an earlier one may follow. The counters wrap at 2^16 and 2^32."""
    for n in range(100):
        line.arrive(n)
        if n >= 3:
            assert line.frames()[-1] == n
    assert line.frames() == list(range(100))
    assert line.jitter.lost == 0
    starts = [item.captured_at for item in line.out if isinstance(item, OrderedFrame)]
    assert starts == pytest.approx([n * 0.02 for n in range(100)])


def test_overtaken_packet_is_waited_for(line: Line) -> None:
    for n in (0, 1, 2, 3, 5, 4, 6):
        line.arrive(n, 0.08 if n in (4, 5) else None)
    assert line.frames() == [0, 1, 2, 3, 4, 5, 6]
    assert not line.gaps()


def test_gap_is_given_up_after_the_hold_and_offers_fec(line: Line) -> None:
    """A missing packet is given up 60 ms after the next one arrived, and the gap contains that next packet for
    recovery.
    """
    for n in (0, 1, 2, 3, 5, 6, 7):
        line.arrive(n)
    assert line.frames() == [0, 1, 2, 3]
    assert line.jitter.deadline == pytest.approx(0.16)
    line.wait(0.16)
    assert line.frames() == [0, 1, 2, 3, 5, 6, 7]
    (gap,) = line.gaps()
    assert gap == MissingFrame(gap.captured_at, TICKS, struct.pack(">I", 5))
    assert gap.captured_at == pytest.approx(0.08)
    assert line.jitter.lost == 1


@pytest.mark.parametrize(("missing", "named"), [(1, 1), (3, 3), (5, 5), (7, 5), (9, 5)])
def test_long_gaps_are_concealed_for_five_frames(line: Line, missing: int, named: int) -> None:
    """Five frames of a long gap are concealed, and the rest stays a hole. The frame before the next packet can be
    recovered.
    """
    for n in range(5):
        line.arrive(n)
    after = 5 + missing
    for n in range(after, after + 5):
        line.arrive(n)
    line.wait(1.0)
    assert len(line.gaps()) == named
    assert line.gaps()[-1].next_payload == struct.pack(">I", after)
    assert all(gap.next_payload is None for gap in line.gaps()[:-1])
    assert line.gaps()[-1].captured_at == pytest.approx((after - 1) * 0.02)
    assert line.jitter.lost == missing
    assert len(line.ends()) == 1


def test_a_leap_makes_no_frames_that_opus_has_not() -> None:
    """Who leaps by 9,599 in sequence and timestamp has lost no frames of one tick, each a turn of a loop, but begins
    anew. The shortest frame of Opus, 2.5 ms, is concealed as any other.
    """
    leaping = Line()
    for n in range(4):
        leaping.arrive(n)
    leap = 9_599
    leaping.jitter.push(
        (leaping.first_sequence + 3 + leap + 1) & 0xFFFF,
        (leaping.first_timestamp + 4 * TICKS + leap) & 0xFFFF_FFFF,
        b"far",
        arrived_at=0.08,
    )
    leaping.wait(0.15)
    assert leaping.gaps() == []
    assert [leaping.out[-1].payload, len(leaping.ends())] == [b"far", 1]  # type: ignore[union-attr]
    short = Line()
    for n in (0, 1, 3):
        short.jitter.push(n, n * 120, b"short", arrived_at=0.02 * n, ticks=120)
    assert [gap.ticks for gap in short.jitter.release(0.2) if isinstance(gap, MissingFrame)] == [120]


def test_a_packet_is_known_while_it_waits_and_when_it_is_released() -> None:
    """Its second copy must not be decrypted: the nonce was used."""
    jitter = JitterBuffer()
    assert not jitter.has(5, TICKS, arrived_at=0.1)
    jitter.push(5, TICKS, b"x", arrived_at=0.0)
    assert jitter.release(0.0) == []
    assert jitter.has(5, TICKS, arrived_at=0.1)
    assert len(jitter.release(0.1)) == 1
    assert jitter.has(5, TICKS, arrived_at=0.1)
    assert not jitter.has(5, 2 * TICKS, arrived_at=0.1)


def test_five_silence_frames_end_the_talkspurt(line: Line) -> None:
    for n in range(10):
        line.arrive(n)
    for n in range(10, 15):
        line.arrive(n, payload=SILENCE_FRAME)
        assert line.jitter.talking == (n < 14)
    assert line.ends() == pytest.approx([0.3])
    assert line.arrive(15, payload=SILENCE_FRAME) is PushResult.SILENCE
    assert line.jitter.deadline is None
    line.arrive(16)
    assert line.frames() == [*range(10), 16]
    assert line.jitter.lost == 0


def test_no_packet_for_200_ms_ends_the_talkspurt(line: Line) -> None:
    for n in range(10):
        line.arrive(n)
    assert line.jitter.deadline == pytest.approx(0.38)
    line.wait(0.37)
    assert line.ends() == []
    line.wait(0.39)
    assert line.ends() == pytest.approx([0.2])
    line.wait(5.0)
    assert len(line.ends()) == 1


def test_timestamp_jump_in_sequence_is_a_new_talkspurt_and_no_loss(line: Line) -> None:
    for n in range(5):
        line.arrive(n)
    for n in range(5, 10):
        line.arrive(n, 0.15 + n * 0.02, skew=150 * 48)
    assert line.frames() == list(range(10))
    assert line.ends() == pytest.approx([0.1])
    assert line.jitter.lost == 0
    assert isinstance(line.out[-1], OrderedFrame)
    assert line.out[-1].captured_at == pytest.approx(0.15 + 9 * 0.02)


def test_padding_alone_uses_its_number_up_and_is_no_frame(line: Line) -> None:
    for n in range(10):
        line.arrive(n, payload=b"" if n == 5 else None)
    line.out += line.jitter.close()
    assert line.frames() == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert (line.gaps(), line.jitter.lost) == ([], 0)


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[int, float]]:
    """Generate packets 0..n of one sender in any order, some lost, some doubled, at any growing times."""
    spread = draw(st.sampled_from((1, 2, 4, 200)))
    fates = draw(
        st.lists(
            st.tuples(
                st.sampled_from((0, 1, 1, 1, 1, 2, 3)),  # copies
                st.integers(0, 199),
                st.sampled_from((0.0, 0.001, 0.02, 0.02, 0.02, 0.1, 0.5)),
            ),
            min_size=1,
            max_size=80,
        )
    )
    order = sorted(
        (n + (delay * (copy + 1)) % spread, n, pause)
        for n, (copies, delay, pause) in enumerate(fates)
        for copy in range(copies)
    )
    at, out = 0.0, []
    for _, n, pause in order:
        at += pause
        out.append((n, at))
    return out


@given(arrivals(), st.integers(0, 65_535), st.integers(0, 2**32 - 1))
def test_each_frame_at_most_once_and_in_order(
    packets: list[tuple[int, float]], first_sequence: int, first_timestamp: int
) -> None:
    """For any loss, delay and order of packets, no frame comes twice or out of order, and every packet is
    counted once.
    """
    line = Line(first_sequence=first_sequence, first_timestamp=first_timestamp)
    fates = [line.arrive(n, at, payload=SILENCE_FRAME if n % 17 > 12 else None) for n, at in packets]
    line.out += line.jitter.close()
    frames = [item for item in line.out if isinstance(item, OrderedFrame)]
    heard = line.frames()
    assert heard == sorted(set(heard))
    assert len(frames) == fates.count(PushResult.ACCEPTED)
    assert line.jitter.lost >= len(line.gaps())
    assert line.jitter.deadline is None
    starts = len(line.ends())
    assert not frames or starts >= 1


@given(
    arrivals(),
    st.integers(0, 65_535),
    st.integers(0, 2**32 - 1),
    st.integers(0, 3),
    st.tuples(st.integers(0, 80), st.integers(0, 65_535)),
)
def test_the_short_way_gives_the_same(
    packets: list[tuple[int, float]],
    first_sequence: int,
    first_timestamp: int,
    odd: int,
    renumbered: tuple[int, int],
) -> None:
    """`pass_on`, where it takes a packet, does what `push` and `release` do, now and for all packets after it, also if
    the sender numbers its packets anew from one of them on.
    """
    begins, jump = renumbered

    def frame(n: int) -> bytes:
        return (SILENCE_FRAME, b"", b"a", b"b")[odd] if n % 19 == 18 else struct.pack(">I", n)

    def play(*, short: bool) -> tuple[list[Released], list[bool], int, int, float | None]:
        jitter, out, known = JitterBuffer(), list[Released](), list[bool]()
        for n, at in packets:
            sequence = (first_sequence + n + (jump if n >= begins else 0)) & 0xFFFF
            timestamp = (first_timestamp + n * TICKS) & 0xFFFF_FFFF
            out += jitter.release(at)
            known.append(jitter.has(sequence, timestamp, arrived_at=at))
            if known[-1]:
                continue
            start = jitter.pass_on(sequence, timestamp, frame(n), arrived_at=at) if short else None
            if start is not None:
                out.append(OrderedFrame(frame(n), start, TICKS))
                continue
            jitter.push(sequence, timestamp, frame(n), arrived_at=at)
            out += jitter.release(at)
        deadline = jitter.deadline
        return out + jitter.close(), known, jitter.lost, jitter.late, deadline

    assert play(short=True) == play(short=False)


@given(arrivals())
def test_release_after_the_deadline_always_decides(packets: list[tuple[int, float]]) -> None:
    """Releasing at the deadline moves or removes the deadline, so a reader that sleeps until it never spins."""
    line = Line()
    for n, at in packets:
        line.arrive(n, at)
        deadline = line.jitter.deadline
        if deadline is not None and deadline <= at:
            pytest.fail("release left something due")
    for _ in range(200):
        deadline = line.jitter.deadline
        if deadline is None:
            return
        assert line.jitter.release(deadline)
    pytest.fail("deadlines never end")


FRAME_TICKS = 960
WRAP = 1 << 32


@given(st.integers(0, WRAP - 1), st.integers(-(WRAP // 2), WRAP // 2 - 1))
def test_ticks_between_allows_for_wrap_around(earlier: int, ticks: int) -> None:
    """The difference of two timestamps is exact up to half of their range, wherever they wrap around."""
    assert ticks_between(earlier, (earlier + ticks) % WRAP) == ticks


def test_the_packet_with_the_least_delay_gives_the_origin() -> None:
    """A second packet that came early shows that the first one was late: the talkspurt began before it arrived."""
    first, second = (0, 10.0), (FRAME_TICKS, 10.005)
    spurt = TalkspurtClock.begin(*first, [first, second])
    assert spurt.at(0) == pytest.approx(10.005 - FRAME_TICKS / CLOCK_HZ)


def test_a_packet_of_another_numbering_gives_no_origin() -> None:
    """A packet whose timestamp is a second or more away does not belong to the talkspurt."""
    first, other = (0, 10.0), (CLOCK_HZ, 10.0)
    assert TalkspurtClock.begin(*first, [first, other]).at(0) == 10.0


def test_jitter_leaves_the_time_line_and_a_drifting_clock_moves_it() -> None:
    """A packet may be early by 0.1 s or late by a second; beyond that, its arrival is its new time."""
    spurt = TalkspurtClock.begin(0, 10.0, [(0, 10.0)])
    spurt.fit(0, 10.9)
    assert spurt.at(0) == 10.0
    spurt.fit(0, 11.2)
    assert spurt.at(0) == pytest.approx(11.2)


def test_a_shift_takes_no_time() -> None:
    """After a jump of the sender's timestamps, the next packet follows the last one directly."""
    spurt = TalkspurtClock.begin(0, 10.0, [(0, 10.0)])
    spurt.advance(0, FRAME_TICKS, is_silence=False)
    end = spurt.ends_at
    spurt.shift(300)
    assert spurt.at(FRAME_TICKS + 300) == pytest.approx(end)
