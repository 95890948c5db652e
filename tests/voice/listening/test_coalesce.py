"""A room's utterances are joined into turns: none is lost, speakers stay apart, and an utterance with the bot's name
does not wait.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.listening.coalesce import DUPLICATE_WITHIN_S, UtteranceCoalescer

ADA, BO = 1, 2
LONGEST_S = 10.0


@dataclass(frozen=True)
class Said:
    """A minimal `Spoken` for tests."""

    user_id: int
    text: str
    started_at: float = 0.0
    ended_at: float = 1.0


def _coalescing() -> UtteranceCoalescer[Said]:
    return UtteranceCoalescer(longest_wait_s=LONGEST_S)


def test_who_has_finished_waits_for_who_has_not() -> None:
    """Overlapping utterances form one turn, ordered by their start, with each speaker's own words."""
    moments = _coalescing()
    bo, ada = Said(BO, "So do I.", 0.5, 1.0), Said(ADA, "I like the tall lighthouse best.", 0.0, 2.0)
    moments.add(bo, urgent=False, now=1.0)
    assert moments.release(anybody_speaks=True, now=1.1) == ()
    moments.add(ada, urgent=False, now=2.1)
    assert moments.release(anybody_speaks=False, now=2.1) == (ada, bo)


def test_who_calls_the_bot_does_not_wait() -> None:
    """An utterance with the bot's name ends the turn together with everything held before it. Later words join the next
    turn.
    """
    moments = _coalescing()
    bo, ada = Said(BO, "So do I.", 0.5), Said(ADA, "Roomtone, what time is it?", 0.9)
    moments.add(bo, urgent=False, now=1.0)
    moments.add(ada, urgent=True, now=1.5)
    assert moments.release(anybody_speaks=True, now=1.5) == (bo, ada)
    moments.add(Said(BO, "Late, surely.", 1.4), urgent=False, now=2.0)
    assert moments.release(anybody_speaks=True, now=2.0) == ()


def test_an_open_microphone_holds_nobody_up_for_ever() -> None:
    """A turn ends at most ten seconds after its first words, even while somebody still speaks."""
    moments = _coalescing()
    moments.add(Said(ADA, "One."), urgent=False, now=1.0)
    moments.add(Said(ADA, "Two."), urgent=False, now=9.0)
    assert moments.release(anybody_speaks=True, now=1.0 + LONGEST_S - 0.1) == ()
    assert len(moments.release(anybody_speaks=True, now=1.0 + LONGEST_S)) == 2


@pytest.mark.parametrize(
    ("second", "is_new"),
    [
        (Said(ADA, "we leave at nine", 1.5, 2.5), False),
        (Said(ADA, "We leave at ten.", 1.5, 2.5), True),
        (Said(BO, "We leave at nine.", 1.5, 2.5), True),
        (Said(ADA, "We leave at nine.", 1.1 + DUPLICATE_WITHIN_S, 5.0), True),
    ],
)
def test_the_same_words_at_once_again_are_left_out(second: Said, is_new: bool) -> None:
    """The same words are dropped only if the same person repeats them shortly after."""
    moments = _coalescing()
    assert moments.add(Said(ADA, "We leave at nine.", 0.0, 1.0), urgent=False, now=1.0)
    assert moments.add(second, urgent=False, now=2.6) is is_new


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 5), st.booleans(), st.booleans()), max_size=30))
def test_nothing_is_lost_and_nothing_twice(steps: list[tuple[int, float, bool, bool]]) -> None:
    """Each utterance comes out exactly once and never later than the longest wait."""
    moments = _coalescing()
    out: list[Said] = []
    since: dict[Said, float] = {}
    now = 0.0
    for number, (user, pause, urgent, speaks) in enumerate(steps):
        now += pause
        said = Said(user, f"number {number}", now, now + 0.5)
        assert moments.add(said, urgent=urgent, now=now)
        since[said] = now
        moment = moments.release(anybody_speaks=speaks, now=now)
        assert list(moment) == sorted(moment, key=lambda one: one.started_at)
        out += moment
        assert all(now - at < LONGEST_S for held, at in since.items() if held not in out)
    out += moments.flush()
    assert sorted(one.text for one in out) == sorted(f"number {number}" for number in range(len(steps)))
