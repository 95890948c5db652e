"""Who comes into a room and who leaves it, as turns, and what who comes back is offered."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.channel.port import MembershipChange, Person
from bot.memory.readable_memory import ReadableMemory
from bot.memory.session_reader import SessionReader
from bot.room.conversation.catch_up_offers import LEAST_AWAY_S, LEAST_TURNS
from bot.room.conversation.membership import TURN_EVERY_S
from bot.room.room_check import CHECK_ROOM_S
from bot.server_settings import ServerSettings
from compaction.model import TurnKind
from tests.bot.room.room_scene import TICK_S, a_house, ended, living, settle
from tests.fakes.place import ADA, BO

if TYPE_CHECKING:
    from pathlib import Path

CY, OTHER = Person(4, "Cy", False), Person(5, "Dee", False)
PLANS = (
    "We walk to the lake on Saturday.",
    "Then somebody has to bring the lanterns.",
    "My sister knows a good bakery there.",
    "The last train leaves before midnight.",
    "I will buy all tickets tomorrow.",
)
assert len(PLANS) >= LEAST_TURNS


@pytest.mark.asyncio
async def test_comings_and_goings_are_turns(tmp_path: Path) -> None:
    """Joining and leaving are recorded as turns, and late words of a person who has left keep their name."""
    async with a_house(tmp_path) as house, living(house) as (room, _):
        room.on_membership(MembershipChange(BO, joined=False))
        house.place.people = [ADA]
        room.on_membership(MembershipChange(BO, joined=True))
        await settle(lambda: len(house.turns) == 1)
        await house.pass_time(TURN_EVERY_S + 2 * CHECK_ROOM_S, step_s=1.0)
        await settle(lambda: len(house.turns) == 2)
        assert house.said == ["Bo: Bo left the channel.", "Bo: Bo joined the channel."]
        assert {turn.kind for turn in house.turns} == {TurnKind.MEMBERSHIP}
        await house.say(BO.id, "My last words came a little late.")
        assert house.said[2] == "Bo: My last words came a little late."


@pytest.mark.asyncio
async def test_300_comings_and_goings_are_one_turn_a_minute(tmp_path: Path) -> None:
    """Somebody who joins and leaves 300 times in five minutes makes one turn a minute. The rest comes at the end."""
    async with a_house(tmp_path) as house, living(house) as (room, task):
        for number in range(300):
            room.on_membership(MembershipChange(CY, joined=number % 2 == 0))
            await house.pass_time(1.0)
        await settle(lambda: len(house.turns) >= 5)
        assert len(house.turns) <= 6
        assert "times" in house.said[1]
        room.on_membership(MembershipChange(CY, joined=True))
        room.close("asked")
        assert await ended(house, task) == "asked"
        assert len(house.turns) <= 7
        # Whether Cy was there when the last minute's turn was made, and how many changes came after it, is a matter of
        # which second that was.
        assert re.search(r"(joined the channel|then joined again|came back( \d+ times)?)\.$", house.said[-1])


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("settings", "opted_out", "offers"),
    [
        (ServerSettings(), False, [("Bo", 5)]),
        (ServerSettings(offers_catch_up=False), False, []),
        (ServerSettings(), True, []),
    ],
)
async def test_who_comes_back_is_offered_a_summary(
    tmp_path: Path, settings: ServerSettings, opted_out: bool, offers: list[tuple[str, int]]
) -> None:
    """Somebody who was away for long is offered it once, unless the server does not want that or they opted out."""
    async with a_house(tmp_path) as house:
        reader = SessionReader(house.sessions, house.store, withheld=house.participation.withheld_on)
        house.readable = ReadableMemory(reader, cast("Any", None), cast("Any", None))
        await house.servers.change(house.place.guild_id, lambda _: settings, by=1)
        async with living(house) as (room, _):
            room.on_membership(MembershipChange(BO, joined=False))
            house.place.people = [ADA, OTHER]
            for plan in PLANS:
                await house.say(ADA.id, plan)
            await house.pass_time(LEAST_AWAY_S, step_s=5.0)
            if opted_out:
                await house.participation.set_opt_out(house.place.guild_id, BO.id, out=True)
            room.on_membership(MembershipChange(BO, joined=True))
            await house.pass_time(TICK_S)
            await settle(lambda: opted_out or house.said[-1] == "Bo: Bo joined the channel.")
            assert house.place.offers == offers


@pytest.mark.asyncio
async def test_a_turn_about_who_comes_back_does_not_wait_for_discord(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discord takes long over the offer. The turn is there by then, so what they say comes after it."""
    async with a_house(tmp_path) as house:
        reader = SessionReader(house.sessions, house.store, withheld=house.participation.withheld_on)
        house.readable = ReadableMemory(reader, cast("Any", None), cast("Any", None))
        asked, answers = asyncio.Event(), asyncio.Event()

        async def offer_catch_up(person: Person, *, minutes: int) -> bool:
            del person, minutes
            asked.set()
            return await answers.wait()

        monkeypatch.setattr(house.place, "offer_catch_up", offer_catch_up)
        async with living(house) as (room, _):
            room.on_membership(MembershipChange(BO, joined=False))
            for plan in PLANS:
                await house.say(ADA.id, plan)
            await house.pass_time(LEAST_AWAY_S, step_s=5.0)
            room.on_membership(MembershipChange(BO, joined=True))
            await settle(asked.is_set)
            assert house.said[-1] == "Bo: Bo joined the channel."
            answers.set()
