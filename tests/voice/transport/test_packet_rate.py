"""How many packets of one sender are worked on."""

from __future__ import annotations

from voice.transport.packet_rate import MOST_PER_S, PacketRate


def test_each_sender_has_a_share_of_each_second() -> None:
    rate = PacketRate()
    assert [rate.take(11, 5.0) for _ in range(MOST_PER_S + 2)] == [True] * MOST_PER_S + [False] * 2
    assert rate.take(12, 5.5)
    assert not rate.take(11, 5.9)
    assert rate.take(11, 6.0)
