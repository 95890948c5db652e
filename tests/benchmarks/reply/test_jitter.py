"""Computing jitter from arrival times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reply.jitter import jitter_ms, lateness_ms, talkspurts
from rehearsal.discord.media.arrivals import PacketArrival


def arrival(sequence: int, at: float, *, silence: bool = False) -> PacketArrival:
    return PacketArrival(1001, sequence % 0x10000, silence, at)


def test_even_packets_have_no_jitter_and_pauses_are_none() -> None:
    """Evenly spaced packets have no jitter, and neither a pause between talkspurts nor the end of the sequence numbers
    adds any.
    """
    first = [arrival(65_530 + n, 10.0 + 0.02 * n) for n in range(5)]
    closing = [arrival(65_535 + n, 10.1 + 0.02 * n, silence=True) for n in range(5)]
    second = [arrival(65_540 + n, 17.3 + 0.02 * n) for n in range(5)]
    spurts = talkspurts([*first, *closing, *second])
    assert [len(spurt) for spurt in spurts] == [5, 5]
    assert jitter_ms(spurts) == pytest.approx([0.0] * 8, abs=1e-6)
    assert list(lateness_ms(spurts)) == pytest.approx([0.0] * 8, abs=1e-6)


def test_one_late_packet_is_seen_twice_as_jitter_and_once_as_late() -> None:
    spurt = [arrival(n, 10.0 + 0.02 * n + (0.005 if n == 2 else 0.0)) for n in range(5)]
    assert jitter_ms([spurt]) == pytest.approx([0.0, 5.0, 5.0, 0.0], abs=1e-6)
    assert list(lateness_ms([spurt])) == pytest.approx([0.0, 5.0, 0.0, 0.0], abs=1e-6)


def test_a_lost_packet_is_no_jitter_and_a_stall_is() -> None:
    """A lost packet is no jitter. A gap without a silence frame before it is the sender's stall and counts."""
    assert jitter_ms([[arrival(1, 10.0), arrival(3, 10.04)]]) == pytest.approx([0.0], abs=1e-6)
    assert jitter_ms([[arrival(1, 10.0), arrival(2, 10.5)]]) == pytest.approx([480.0], abs=1e-6)


@given(st.lists(st.floats(0, 0.015), min_size=2, max_size=50), st.integers(0, 70_000))
def test_delays_bound_what_is_found(delays: list[float], first: int) -> None:
    """No figure is negative or larger than the largest delay."""
    spurt = [arrival(first + n, 10.0 + 0.02 * n + delay) for n, delay in enumerate(delays)]
    worst = 1000 * (max(delays) - min(delays)) + 1e-6
    assert all(0 <= value <= worst for value in jitter_ms([spurt]))
    assert all(-1e-6 <= value <= worst for value in lateness_ms([spurt]))
