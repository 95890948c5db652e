"""Comings and goings are gathered: one turn a minute and person, in which none is lost."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channel.port import MembershipChange, Person
from bot.room.conversation.membership import TURN_EVERY_S, MembershipGatherer

ADA, BO = Person(1, "Ada", is_bot=False), Person(2, "Bo", is_bot=False)


@pytest.mark.parametrize(
    ("later", "what"),
    [
        ([], []),
        ([False], ["left the channel."]),
        ([False, True], ["left the channel and came back."]),
        ([False, True, False], ["left the channel and came back, then left again."]),
        ([False, True] * 3, ["left the channel and came back 3 times."]),
        ([False, True] * 3 + [False], ["left the channel and came back 3 times, then left again."]),
        ([True, True], []),
    ],
)
def test_what_is_gathered_after_joining(later: list[bool], what: list[str]) -> None:
    """The first change is told at once. Those of the following minute are told together, when it is over."""
    gatherer = MembershipGatherer()
    first = gatherer.handle(MembershipChange(ADA, joined=True), 0.0)
    assert first is not None
    assert (first.person, first.what) == (ADA, "joined the channel.")
    assert not any(gatherer.handle(MembershipChange(ADA, joined=joined), 1.0) for joined in later)
    assert gatherer.due(TURN_EVERY_S - 1) == ()
    assert [news.what for news in gatherer.due(TURN_EVERY_S)] == what
    assert gatherer.rest(TURN_EVERY_S) == ()


@pytest.mark.parametrize(
    ("later", "what"),
    [
        ([True], "joined the channel."),
        ([True, False], "joined the channel and left."),
        ([True, False] * 2, "joined the channel and left 2 times."),
        ([True, False] * 2 + [True], "joined the channel and left 2 times, then joined again."),
    ],
)
def test_what_is_gathered_after_leaving(later: list[bool], what: str) -> None:
    """The same of somebody whose last turn says that they left. The end of the room tells it before its time."""
    gatherer = MembershipGatherer()
    gatherer.handle(MembershipChange(ADA, joined=False), 0.0)
    for joined in later:
        gatherer.handle(MembershipChange(ADA, joined=joined), 1.0)
    assert [news.what for news in gatherer.rest(2.0)] == [what]


def left_present(what: str) -> bool:
    """Return whether a turn leaves the person in the channel. An odd number of changes ends elsewhere than it began."""
    odd = "then" in what or what in {"joined the channel.", "left the channel."}
    return what.startswith("left") is not odd


CHANGES = st.lists(st.tuples(st.sampled_from([ADA, BO]), st.booleans(), st.floats(0, 40)), max_size=60)


@given(CHANGES)
def test_a_person_makes_at_most_one_turn_a_minute(changes: list[tuple[Person, bool, float]]) -> None:
    """Whatever happens, two turns of one person are a minute apart, and the last one says where the person is."""
    gatherer, now = MembershipGatherer(), 0.0
    told: dict[int, list[tuple[float, str]]] = {ADA.id: [], BO.id: []}
    present: dict[int, bool] = {}
    for person, joined, pause_s in changes:
        now += pause_s
        news = [*gatherer.due(now)]
        if (at_once := gatherer.handle(MembershipChange(person, joined=joined), now)) is not None:
            news.append(at_once)
        assert max(Counter(each.person.id for each in news).values(), default=0) <= 1
        for each in news:
            told[each.person.id].append((now, each.what))
        present[person.id] = joined
    for each in gatherer.due(now + 2 * TURN_EVERY_S):
        told[each.person.id].append((now + 2 * TURN_EVERY_S, each.what))
    for person_id, turns in told.items():
        assert all(after - before >= TURN_EVERY_S - 1e-6 for (before, _), (after, _) in itertools.pairwise(turns))
        if turns:
            assert left_present(turns[-1][1]) is present[person_id]
    assert gatherer.rest(now) == ()
