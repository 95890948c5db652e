"""A sender that numbers its packets anew is heard; stray packets of the old numbering are not heard again.

The tables were written from what was reported (a sequence that fell back by 300 after half a second: 100 of 100 frames
late), before the code. `APART` was kept apart while the code was changed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

import pytest

from voice.transport.jitter import JitterBuffer, OrderedFrame, PushResult

TICKS = 960
BEFORE, AFTER = 400, 100
FIRST_SEQUENCE, FIRST_TIMESTAMP = 60_000, 0xFFFF_0000


@dataclass(frozen=True)
class Renumbering:
    """400 packets, a pause, and 100 packets whose sequence begins `back` before the next number.

    `timestamps`: "fall" back with the sequence, "go_on" with the clock, or begin "anew" at random. `swapped`: the first
    two arrive in the wrong order. `missed`: how many of the 100 may be lost.
    """

    back: int
    quiet_s: float
    timestamps: Literal["fall", "go_on", "anew"]
    swapped: bool = False
    missed: int = 0


TUNED = (
    Renumbering(300, 0.5, "fall"),
    Renumbering(300, 0.5, "anew"),
    Renumbering(50, 0.5, "go_on"),
    Renumbering(5000, 0.02, "anew"),
    Renumbering(1, 0.5, "go_on"),
    Renumbering(300, 0.5, "fall", swapped=True),
    Renumbering(100, 3.0, "fall"),
    Renumbering(10, 0.02, "go_on"),
    Renumbering(50, 0.02, "go_on"),
)
APART = (
    Renumbering(300, 0.25, "go_on"),
    Renumbering(300, 0.02, "fall"),
    Renumbering(30_000, 0.5, "anew"),
    Renumbering(40, 1.0, "anew"),
    Renumbering(200, 3.0, "fall"),
    Renumbering(60, 0.5, "anew", swapped=True),
    Renumbering(2, 0.02, "go_on"),
    Renumbering(30, 0.02, "go_on"),
    Renumbering(50, 0.02, "go_on", swapped=True),
)


def frame(n: int) -> bytes:
    return struct.pack(">i", n)


def begun() -> tuple[JitterBuffer, list[OrderedFrame]]:
    """Return a buffer that has heard 400 packets until second 8.0, and what it released."""
    jitter, heard = JitterBuffer(), list[OrderedFrame]()
    for n in range(BEFORE):
        arrive(jitter, heard, n, at=n * 0.02)
    return jitter, heard


def arrive(
    jitter: JitterBuffer, heard: list[OrderedFrame], n: int, *, at: float, ticks: int | None = None
) -> PushResult:
    """Packet `n` of the old numbering arrives; `ticks`: its timestamp, counted from the first one's."""
    wait(jitter, heard, at)
    sequence, timestamp = (FIRST_SEQUENCE + n) & 0xFFFF, FIRST_TIMESTAMP + (n * TICKS if ticks is None else ticks)
    result = jitter.push(sequence, timestamp & 0xFFFF_FFFF, frame(n), arrived_at=at)
    wait(jitter, heard, at)
    return result


def wait(jitter: JitterBuffer, heard: list[OrderedFrame], until: float) -> None:
    heard += [item for item in jitter.release(until) if isinstance(item, OrderedFrame)]


@pytest.mark.parametrize("case", TUNED + APART, ids=str)
def test_a_new_numbering_is_heard(case: Renumbering) -> None:
    jitter, heard = begun()
    start = BEFORE * 0.02 + case.quiet_s
    wait(jitter, heard, start)
    before = len(heard)
    order = [1, 0, *range(2, AFTER)] if case.swapped else list(range(AFTER))
    first = {"fall": (BEFORE - case.back) * TICKS, "go_on": int(start * 48_000), "anew": 0x1234_5678}[case.timestamps]
    for at, k in enumerate(order):
        n = BEFORE - case.back + k
        now, timestamp = start + at * 0.02, (FIRST_TIMESTAMP + first + k * TICKS) & 0xFFFF_FFFF
        assert not jitter.has((FIRST_SEQUENCE + n) & 0xFFFF, timestamp, arrived_at=now)
        arrive(jitter, heard, n, at=now, ticks=first + k * TICKS)
    wait(jitter, heard, start + 10)
    expected = [frame(BEFORE - case.back + k) for k in range(AFTER)]
    got = [item.payload for item in heard[before:]]
    assert len(got) >= AFTER - case.missed
    assert got == expected[-len(got) :]


@pytest.mark.parametrize(("back", "quiet_s"), [(10, 0.02), (90, 0.02), (10, 0.5), (60, 1.5)])
def test_late_packets_of_the_same_numbering_stay_late(back: int, quiet_s: float) -> None:
    """Two packets that were given up as lost and come after all, during speech or after it, are not heard."""
    jitter, heard = JitterBuffer(), list[OrderedFrame]()
    missing = {BEFORE - back, BEFORE - back + 1}
    for n in range(BEFORE):
        if n not in missing:
            arrive(jitter, heard, n, at=n * 0.02)
    start = BEFORE * 0.02 + quiet_s
    assert [arrive(jitter, heard, n, at=start) for n in sorted(missing)] == [PushResult.LATE] * 2
    for n in range(BEFORE, BEFORE + 50):
        arrive(jitter, heard, n, at=start + (n - BEFORE) * 0.02, ticks=int(quiet_s * 48_000) + n * TICKS)
    wait(jitter, heard, start + 10)
    assert [item.payload for item in heard] == [frame(n) for n in range(BEFORE + 50) if n not in missing]


@pytest.mark.parametrize("quiet_s", [0.02, 0.5, 1.9])
def test_copies_after_a_pause_are_known(quiet_s: float) -> None:
    """A copy of a packet is recognised before it is decrypted, also after the sender has numbered anew."""
    jitter, heard = begun()
    last = (FIRST_SEQUENCE + BEFORE - 1) & 0xFFFF, (FIRST_TIMESTAMP + (BEFORE - 1) * TICKS) & 0xFFFF_FFFF
    wait(jitter, heard, 8.0 + quiet_s)
    assert jitter.has(*last, arrived_at=8.0 + quiet_s)
    for k in range(5):
        arrive(jitter, heard, BEFORE - 300 + k, at=8.0 + quiet_s + k * 0.02, ticks=0x1234_5678 + k * TICKS)
    assert jitter.has(*last, arrived_at=8.1 + quiet_s)


def test_one_stray_packet_changes_nothing() -> None:
    """One packet far behind is dropped, and the numbering goes on as it was."""
    jitter, heard = begun()
    assert arrive(jitter, heard, BEFORE - 350, at=8.5) is PushResult.UNDECIDED
    for n in range(BEFORE, BEFORE + 50):
        arrive(jitter, heard, n, at=8.5 + (n - BEFORE) * 0.02)
    wait(jitter, heard, 20.0)
    assert [item.payload for item in heard] == [frame(n) for n in range(BEFORE + 50)]
    assert (jitter.lost, jitter.late) == (0, 1)
