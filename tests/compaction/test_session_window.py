"""Which turns are sent and which stay in memory, in each memory mode."""

from __future__ import annotations

import pytest

from compaction.budget.eviction_note import EvictedTurns
from compaction.context_source import ROLLING_TURNS, SessionWindow
from compaction.model import Mode, Seq, Turn, TurnKind, TurnPart
from compaction.timeline import Timeline
from compaction.window import RECENT_WINDOW

CURSOR = Seq(20)


def timeline_of(count: int) -> Timeline:
    timeline = Timeline(capacity=5_000)
    for seq in range(count):
        timeline.append(
            Turn(Seq(seq), TurnKind.SPEECH, 4.0 * seq, 4.0 * seq + 2, (TurnPart("1", "Ada", f"Sentence {seq}."),))
        )
    return timeline


def evicted(until: int) -> EvictedTurns:
    return EvictedTurns(Seq(0), Seq(until), 10 * until, 0.0, 4.0 * until)


@pytest.mark.parametrize(
    ("mode", "evicted_until", "sent_from", "needed_from"),
    [
        # Nothing is folded in this mode, so what was stored is in memory only as long as it is sent.
        (Mode.OFF, None, 100 - RECENT_WINDOW, 100 - RECENT_WINDOW),
        (Mode.SUMMARY, None, 20, 20),
        (Mode.ROLLING, None, 20, 20),
        (Mode.ROLLING, 60, 60, 60),
        # What is not stored yet stays in memory, although it is sent no more.
        (Mode.ROLLING, 98, 98, 95),
        # What is folded is not sent again because less of it was evicted.
        (Mode.ROLLING, 10, 20, 20),
    ],
)
def test_window_of_each_mode(mode: Mode, evicted_until: int | None, sent_from: int, needed_from: int) -> None:
    """Of 100 turns, 20 are folded and 95 are stored."""
    window = SessionWindow(timeline_of(100), mode)
    if evicted_until is not None:
        assert window.evict(evicted(evicted_until)) == evicted_until
    sent = window.turns(CURSOR)
    assert [turn.seq for turn in sent] == list(range(sent_from, 100))
    assert window.needed_from(CURSOR, stored_turns=95) == needed_from


def test_eviction_is_counted_once() -> None:
    """The same eviction again changes nothing, and outside the rolling mode nothing is evicted."""
    window = SessionWindow(timeline_of(100), Mode.ROLLING)
    assert window.evict(evicted(40)) == 40
    assert window.evict(evicted(40)) is None
    assert window.evict(evicted(55)) == 15
    assert window.evict(None) is None
    window.change_mode(Mode.SUMMARY)
    assert window.evict(evicted(60)) is None
    assert window.evicted is None
    assert len(window.turns(CURSOR)) == 80


def test_half_of_too_many_turns_stays() -> None:
    """While nobody asks the bot anything, the window is halved as soon as it is longer than any payload."""
    window = SessionWindow(timeline_of(ROLLING_TURNS + 1), Mode.ROLLING)
    surplus = window.surplus(window.turns(Seq(0)))
    assert surplus is not None
    assert (surplus.start, surplus.until) == (0, ROLLING_TURNS // 2 + 1)
    assert window.evict(surplus) == ROLLING_TURNS // 2 + 1
    assert len(window.turns(Seq(0))) == ROLLING_TURNS // 2
    assert window.surplus(window.turns(Seq(0))) is None
    window.change_mode(Mode.SUMMARY)
    assert window.surplus(window.turns(Seq(0))) is None
