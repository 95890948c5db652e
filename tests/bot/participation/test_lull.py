"""When a quiet room is quiet enough."""

from __future__ import annotations

from bot.participation.lull import Lull


def test_it_takes_a_long_silence() -> None:
    """Counted from the last thing heard."""
    lull = Lull(after_s=600.0, every_s=1_800.0, now=0.0)
    lull.sounded(100.0)
    lull.sounded(50.0)
    assert not lull.due(699.0)
    assert lull.due(700.0)


def test_there_is_one_in_a_while() -> None:
    """However quiet it stays, and however often it falls quiet."""
    lull = Lull(after_s=60.0, every_s=1_800.0, now=0.0)
    assert lull.due(60.0)
    lull.taken(60.0)
    assert not lull.due(1_800.0)
    lull.sounded(1_840.0)
    assert not lull.due(1_880.0)
    assert lull.due(1_900.0)


def test_it_is_off_unless_somebody_wants_it() -> None:
    """0 minutes means never."""
    lull = Lull(after_s=0.0, every_s=1_800.0, now=0.0)
    assert not lull.wanted
    assert not lull.due(1e9)
