"""Who comes into a room and who leaves it: as turns, one a minute and person, in which none is lost; and what who comes
back is offered.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channel.port import MembershipChange, Person
from bot.memory.personal_recall import MemoryReaders
from bot.memory.session_views import SessionViews
from bot.room import membership
from bot.room.membership import (
    LEAST_AWAY_S,
    LEAST_TURNS,
    TURN_EVERY_S,
    CatchUpOffers,
    MembershipGatherer,
)
from bot.room.room import Room
from bot.room.room_check import CHECK_ROOM_S
from bot.server_settings import ServerSettings
from compaction.model import TurnKind
from tests.bot.room.room_scene import TICK_S, House, living
from tests.fakes.room_channel import ADA, BO, OTHER_BOT
from tests.patience import settle

CY, OTHER = Person(4, "Cy", False), Person(5, "Dee", False)


async def test_comings_and_goings_are_turns(house: House, room: Room) -> None:
    """Joining and leaving are recorded as turns, and late words of a person who has left keep their name."""
    room.on_membership(MembershipChange(BO, joined=False))
    house.channel.people = [ADA]
    await settle(lambda: len(house.turns) == 1)
    room.on_membership(MembershipChange(BO, joined=True))
    await house.pass_time(TURN_EVERY_S + 2 * CHECK_ROOM_S, step_s=1.0)
    await settle(lambda: len(house.turns) == 2)
    assert house.said == ["Bo: Bo left the channel.", "Bo: Bo joined the channel."]
    assert {turn.kind for turn in house.turns} == {TurnKind.MEMBERSHIP}
    await house.say(BO.id, "My last words came a little late.")
    assert house.said[2] == "Bo: My last words came a little late."


@pytest.mark.parametrize(
    ("settings", "opted_out", "offers"),
    [
        (ServerSettings(), False, [("Bo", 5)]),
        (ServerSettings(offers_catch_up=False), False, []),
        (ServerSettings(), True, []),
    ],
)
async def test_who_comes_back_is_offered_a_summary(
    house: House,
    settings: ServerSettings,
    opted_out: bool,
    offers: list[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody who was away for long is offered it once, unless the server does not want that or they opted out."""
    monkeypatch.setattr(membership, "LEAST_TURNS", 1)
    views = SessionViews(house.sessions, house.store, withheld=house.participation.withheld_on)
    house.readable = MemoryReaders(views, cast("Any", None), cast("Any", None))
    await house.servers.change(house.channel.guild_id, lambda _: settings, by=1)
    async with living(house) as (room, _):
        room.on_membership(MembershipChange(BO, joined=False))
        house.channel.people = [ADA, OTHER]
        await house.say(ADA.id, "We walk to the lake on Saturday.")
        await house.pass_time(LEAST_AWAY_S, step_s=5.0)
        if opted_out:
            await house.participation.set_opt_out(house.channel.guild_id, BO.id, out=True)
        room.on_membership(MembershipChange(BO, joined=True))
        await house.pass_time(TICK_S)
        await settle(lambda: opted_out or house.said[-1] == "Bo: Bo joined the channel.")
        assert house.channel.offers == offers
        assert ("Bo: Bo joined the channel." in house.said) is not opted_out


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
    gatherer.handle(MembershipChange(ADA, joined=True))
    (first,) = gatherer.due(0.0)
    assert first == (ADA, "joined the channel.")
    for joined in later:
        gatherer.handle(MembershipChange(ADA, joined=joined))
    assert list(gatherer.due(TURN_EVERY_S - 1)) == []
    assert [told for _, told in gatherer.due(TURN_EVERY_S)] == what
    assert list(gatherer.due(TURN_EVERY_S, room_ends=True)) == []


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
    gatherer.handle(MembershipChange(ADA, joined=False))
    assert len(list(gatherer.due(0.0))) == 1
    for joined in later:
        gatherer.handle(MembershipChange(ADA, joined=joined))
    assert [told for _, told in gatherer.due(2.0, room_ends=True)] == [what]


def test_what_is_not_recorded_stays_gathered() -> None:
    """The room may end while one of several turns is being stored: the others are not lost."""
    gatherer = MembershipGatherer()
    for person in (ADA, BO):
        gatherer.handle(MembershipChange(person, joined=True))
    assert next(gatherer.due(0.0))[0] is ADA
    assert [person for person, _ in gatherer.due(0.0, room_ends=True)] == [BO]


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
        gatherer.handle(MembershipChange(person, joined=joined))
        news = list(gatherer.due(now))
        assert max(Counter(who.id for who, _ in news).values(), default=0) <= 1
        for who, what in news:
            told[who.id].append((now, what))
        present[person.id] = joined
    for who, what in gatherer.due(now + 2 * TURN_EVERY_S):
        told[who.id].append((now + 2 * TURN_EVERY_S, what))
    for person_id, turns in told.items():
        assert all(after - before >= TURN_EVERY_S - 1e-6 for (before, _), (after, _) in itertools.pairwise(turns))
        if turns:
            assert left_present(turns[-1][1]) is present[person_id]
    assert list(gatherer.due(now, room_ends=True)) == []


def comes_back(
    offers: CatchUpOffers, person: Person = BO, *, away_s: float = LEAST_AWAY_S, turns: int = LEAST_TURNS
) -> float | None:
    """Let somebody leave and come back."""
    assert offers.handle(MembershipChange(person, joined=False), total_turns=10, now=50.0) is None
    return offers.handle(MembershipChange(person, joined=True), total_turns=10 + turns, now=50.0 + away_s)


@pytest.mark.parametrize(
    ("person", "away_s", "turns", "offered"),
    [
        (BO, LEAST_AWAY_S, LEAST_TURNS, True),
        (BO, LEAST_AWAY_S - 1, LEAST_TURNS, False),
        (BO, LEAST_AWAY_S, LEAST_TURNS - 1, False),
        (OTHER_BOT, LEAST_AWAY_S, LEAST_TURNS, False),
    ],
)
def test_only_who_was_away_for_long_and_missed_something(
    person: Person, away_s: float, turns: int, offered: bool
) -> None:
    """The offer is for people who missed at least five minutes and five turns."""
    assert (comes_back(CatchUpOffers(), person, away_s=away_s, turns=turns) == away_s) == offered


def test_once_in_a_session() -> None:
    """Who has been offered it once knows of it; others are offered theirs. Who comes first has nothing to catch up."""
    offers = CatchUpOffers()
    assert offers.handle(MembershipChange(ADA, joined=True), total_turns=90, now=5_000.0) is None
    assert comes_back(offers)
    assert comes_back(offers) is None
    assert comes_back(offers, ADA)
