"""Who is offered what was said meanwhile: whoever comes back after a while, once in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bot.channel.port import MembershipChange
from bot.room.conversation.catch_up_offers import LEAST_AWAY_S, LEAST_TURNS, CatchUpOffers
from bot.server_settings import ServerSettings
from tests.bot.room.room_scene import ended, living, settle
from tests.bot.room.test_recap import house_with_recaps
from tests.fakes.place import ADA, BO, OTHER_BOT

if TYPE_CHECKING:
    from pathlib import Path

    from bot.channel.port import Person


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


@pytest.mark.asyncio
@pytest.mark.parametrize(("chosen", "opted_out"), [(True, False), (False, False), (True, True)])
async def test_the_room_makes_the_offer(tmp_path: Path, chosen: bool, opted_out: bool) -> None:
    """It is made unless the server does not want it, or the person does not want to be heard."""
    async with house_with_recaps(tmp_path) as house:
        await house.servers.change(house.place.guild_id, lambda _: ServerSettings(offers_catch_up=chosen), by=1)
        async with living(house) as (room, task):
            if opted_out:
                await house.participation.set_opt_out(house.place.guild_id, BO.id, out=True)
            room.on_membership(MembershipChange(BO, joined=False))
            for number in range(LEAST_TURNS):
                await house.say(ADA.id, f"Train {number + 20} leaves on Friday.")
            await settle(lambda: sum("Train" in line for line in house.said) == LEAST_TURNS)
            await house.pass_time(LEAST_AWAY_S, step_s=1.0)
            room.on_membership(MembershipChange(BO, joined=True))
            await house.pass_time(1.0)
            await house.say(ADA.id, "Welcome back.")
            await settle(lambda: any("Welcome" in line for line in house.said))
            expected = [("Bo", 5)] if chosen and not opted_out else []
            # It comes after the turn that says that Bo is back.
            await settle(lambda: len(house.place.offers) >= len(expected))
            room.close("left")
            await ended(house, task)
        assert house.place.offers == expected
