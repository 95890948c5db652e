"""Packet counters have one name for every reason, and their snapshots do not change."""

from __future__ import annotations

import pytest

from voice.transport.counters import PacketCounters
from voice.transport.decrypt import DecryptFailure
from voice.transport.jitter import PushResult
from voice.transport.rtp import Rejection

# Who is accepted or undecided gets a fate later.
_NO_FATE = (PushResult.ACCEPTED, PushResult.UNDECIDED)


def test_every_reason_adds_to_its_counter() -> None:
    counters = PacketCounters()
    reasons = [*Rejection, *DecryptFailure, *(arrival for arrival in PushResult if arrival not in _NO_FATE)]
    for reason in reasons:
        counters.count(reason)
    assert {name: count for name, count in counters.as_dict().items() if count} == dict.fromkeys(reasons, 1)


def test_a_copy_stands_still() -> None:
    counters = PacketCounters()
    copy = counters.copy()
    counters.count("received")
    assert (copy.received, counters.received) == (0, 1)


def test_an_unknown_reason_is_refused() -> None:
    with pytest.raises(AttributeError):
        PacketCounters().count("misspelt")
