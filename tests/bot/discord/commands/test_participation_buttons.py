"""The buttons by which people agree to be heard, and let the bot talk again, on the local Discord."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.channel.port import ChatError
from bot.discord.access import PEOPLE, Who
from bot.discord.commands.participation import HEARD, NOT_HEARD, NOT_LISTENING_HERE
from bot.discord.connection import connected
from bot.discord.place import DiscordPlace
from bot.participation.all_guilds import MAY_SPEAK, SILENCED_FOR_GOOD
from bot.texts.text import verbatim
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.test_client import FakeSupervisor, settings_for, settle
from tests.fakes.place import FakePlace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


GUILD, LOUNGE, ADA, BEN, CHLOE = 500, 600, 2001, 2002, 2003


class FakeConsents:
    """Stores who agreed. `refuses`: raise an error instead."""

    def __init__(self) -> None:
        self.agreed: set[int] = set()
        self.refuses = False

    async def set_agreed(self, guild_id: int, person_id: int, *, agrees: bool) -> None:
        """Store the answer."""
        if self.refuses:
            raise ChatError("Use /opt-in first.")
        (self.agreed.add if agrees else self.agreed.discard)(person_id)


@asynccontextmanager
async def asking(consents: FakeConsents) -> AsyncIterator[tuple[LocalDiscord, FakeSupervisor, int]]:
    """Start a local Discord with a notice that asks, and return it with the message. The bot is in the lounge."""
    supervisor, participation = FakeSupervisor(), cast("Any", consents)
    async with (
        LocalDiscord() as local,
        connected(settings_for(local), supervisor, participation=participation) as client,
    ):
        supervisor.place = client.place(local.guild.id, LOUNGE)
        assert supervisor.place is not None
        assert await supervisor.place.write_notice(verbatim("I ask."), asks=True)
        yield local, supervisor, local.messages[0].id


async def pressed(local: LocalDiscord, message_id: int, label: str) -> str:
    """Press a button, and return the answer, which only that person sees."""
    (reply,) = (await local.press(ADA, message_id, label)).replies
    assert reply.ephemeral
    return reply.content


async def test_a_press_is_an_answer_that_only_the_person_sees() -> None:
    """One button agrees, the other takes it back. Agreeing has a limit, because taking it back ends the bot's reply;
    nobody waits to take it back.
    """
    consents = FakeConsents()
    async with asking(consents) as (local, _, message_id):
        for number in range(4):
            told = await pressed(local, message_id, "Hear me")
            assert told == HEARD if number < 3 else "Please wait " in told
            assert consents.agreed == ({ADA} if number < 3 else set())
            assert await pressed(local, message_id, "Do not hear me") == NOT_HEARD
            assert consents.agreed == set()
        consents.refuses = True
        assert await pressed(local, message_id, "Do not hear me") == "Use /opt-in first."


@pytest.mark.parametrize("where", [None, 602])
async def test_a_button_of_another_evening_agrees_to_nothing(where: int | None) -> None:
    """A press below an old notice, in a channel where the bot is not now, changes nothing."""
    consents = FakeConsents()
    async with asking(consents) as (local, supervisor, message_id):
        supervisor.place = None if where is None else FakePlace(channel_id=where)
        assert await pressed(local, message_id, "Hear me") == NOT_LISTENING_HERE
        assert consents.agreed == set()


async def test_the_buttons_stand_below_a_notice_that_asks() -> None:
    """A notice that asks has both buttons, any other has none."""
    async with LocalDiscord() as local:
        rooms: Any = SimpleNamespace(place_of=lambda _: None)
        async with connected(settings_for(local), rooms, participation=cast("Any", FakeConsents())) as client:
            place = client.place(local.guild.id, LOUNGE)
            assert isinstance(place, DiscordPlace)
            assert await place.write_notice("I ask.", asks=True)
            assert await place.write_notice("I tell.")
            await settle(lambda: len(local.messages) == 2)
            asked, told = (message.payload for message in local.messages)
            assert asked["author"]["id"] == str(ROOMTONE_BOT_ID)
            labels = [button["custom_id"] for row in asked["components"] for button in row["components"]]
            assert labels == ["roomtone:hear-me", "roomtone:do-not-hear-me"]
            assert not told.get("components")


class FakeSilences:
    """Notes who ended a silence. `always`: only a moderator ends it."""

    def __init__(self, *, always: bool = False) -> None:
        self.lifted: list[tuple[int, int, bool]] = []
        self.always = always

    async def lift_silence(self, guild_id: int, *, by: int, moderator: bool) -> bool:
        """Note the press."""
        self.lifted.append((guild_id, by, moderator))
        return moderator or not self.always


@pytest.mark.parametrize(
    ("person", "always", "told", "lifted"),
    [
        (ADA, True, MAY_SPEAK, [(GUILD, ADA, True)]),
        (BEN, False, MAY_SPEAK, [(GUILD, BEN, False)]),
        (BEN, True, SILENCED_FOR_GOOD, [(GUILD, BEN, False)]),
        (CHLOE, False, f"Only {PEOPLE[Who.PRESENT_OR_MODERATORS]} can do that.", []),
    ],
)
async def test_a_press_is_a_talk_command(person: int, always: bool, told: str, lifted: list[object]) -> None:
    """With its rules, and an answer that only the person sees. It stands below the sentence about the silence, and
    below no other. Ada moderates, Ben is in the channel, and Chloe is not.
    """
    silences, supervisor = FakeSilences(always=always), FakeSupervisor()
    participation = cast("Any", silences)
    async with (
        LocalDiscord() as local,
        connected(settings_for(local), supervisor, participation=participation) as client,
    ):
        place = supervisor.place = client.place(local.guild.id, LOUNGE)
        assert place is not None
        await local.join(BEN, channel_id=LOUNGE)
        await settle(lambda: bool(supervisor.movements))
        await place.offer_talk(verbatim("I am silent."))
        await place.write(verbatim("I am not."))
        silent, other = local.messages
        assert not other.payload.get("components")
        (reply,) = (await local.press(person, silent.id, "Talk again")).replies
        assert (reply.content, reply.ephemeral, silences.lifted) == (told, True, lifted)
