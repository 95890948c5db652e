"""/quiet, /talk, /opt-out and /opt-in against the local Discord, and the buttons that do the same: who may use each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import pytest

from bot.channel.port import ChatError
from bot.discord.access import PEOPLE, Who
from bot.discord.commands.participation import HEARD, NOT_HEARD, NOT_LISTENING_HERE, add_participation_commands
from bot.discord.connection import connected
from bot.participation.guild_state import MAY_SPEAK, SILENCED_FOR_GOOD, GuildState, OptOuts
from bot.server_settings import MemoryServerSettings, ServerSettingsStore
from bot.texts.text import verbatim
from rehearsal.discord.server import LocalDiscord
from rehearsal.pytest_plugin import open_discord
from tests.bot.discord.client import ADA, BEN, FakeRooms, enters, room_channel_in, settings_for
from tests.bot.discord.commands.local_server import answer_to, participation_with, server_with
from tests.bot.participation.rooms import SilencedRoom as FakeRoom
from tests.fakes.choices import FailingServerSettings, FakeOptOuts
from tests.fakes.room_channel import FakeRoomChannel


@asynccontextmanager
async def online(
    stored: ServerSettingsStore | None = None, opt_outs: OptOuts | None = None
) -> AsyncIterator[tuple[LocalDiscord, GuildState]]:
    """Start the local Discord and the client with the commands, with the bot in a voice channel."""
    participation = participation_with(stored or MemoryServerSettings(), opt_outs or FakeOptOuts())
    async with server_with(partial(add_participation_commands, participation=participation)) as local:
        guild = await participation.of_guild(local.guild.id)
        guild.room = FakeRoom()
        yield local, guild


async def test_anybody_silences_it_for_now() -> None:
    """Every member can silence the bot until /talk or for some minutes."""
    async with online() as (local, guild):
        told = await answer_to(local, BEN, "quiet")
        assert "uses /talk" in told
        assert guild.silence.applies("evening", now=0.0)
        assert await answer_to(local, BEN, "talk") == MAY_SPEAK
        assert not guild.silence.applies("evening", now=0.0)
        assert (await answer_to(local, BEN, "quiet", **{"for": 20})).startswith("I am silent for 20 minutes, or until")
        assert guild.silence.until is not None
        guild.room = None
        assert "not in a voice channel" in await answer_to(local, BEN, "quiet")


async def test_a_manager_silences_it_for_good() -> None:
    """Only a manager can start and end a permanent silence; a member gets an answer that says so."""
    async with online() as (local, guild):
        for person, command, told, is_silent in (
            (BEN, "silence", f"Only {PEOPLE[Who.MANAGERS]} can do that.", False),
            (ADA, "silence", "I am silent on this server until a server manager uses /talk. I still listen", True),
            (BEN, "talk", SILENCED_FOR_GOOD, True),
            (ADA, "talk", MAY_SPEAK, False),
        ):
            assert (await answer_to(local, person, command)).startswith(told)
            assert guild.silence.always is is_silent


async def test_who_does_not_want_to_be_heard_is_not() -> None:
    """A person who opts out is not heard until they opt in again; where the bot asks, until they press the button."""
    async with online() as (local, guild):
        answer = await answer_to(local, BEN, "opt-out")
        assert answer.startswith("I no longer hear you on this server")
        assert "/forget-me" in answer
        assert guild.opted_out == {BEN}
        assert "hear you again" in await answer_to(local, BEN, "opt-in")
        assert guild.opted_out == frozenset()
        guild.asks = True
        await answer_to(local, BEN, "opt-out")
        told = await answer_to(local, BEN, "opt-in")
        assert told.startswith("Your /opt-out on this server is over. But")
        assert guild.excludes(BEN)


@pytest.mark.parametrize("asks", [False, True])
async def test_a_database_that_is_away_is_told(asks: bool) -> None:
    """What somebody chose holds; the answer says that it is not stored, and what they have to do."""
    stored, opt_outs = FailingServerSettings(), FakeOptOuts()
    async with online(stored, opt_outs) as (local, guild):
        guild.asks = asks
        stored.broken = opt_outs.broken = True
        for command in ("quiet", "opt-out", "opt-in"):
            answer = await answer_to(local, BEN, command)
            assert "I could not save it" in answer
            assert "Make room" in answer
            assert guild.excludes(BEN) is (command == "opt-out" or asks)
        assert ("*Hear me*" in answer) is asks
        assert guild.silence.applies("evening", now=0.0)


GUILD, LOUNGE, CHLOE = 500, 600, 2003


class FakeConsents:
    """Stores who agreed. `refuses`: raise an error instead."""

    def __init__(self) -> None:
        self.agreed: set[int] = set()
        self.refuses = False

    async def set_agreed(self, guild_id: int, person_id: int, *, agrees: bool) -> None:
        if self.refuses:
            raise ChatError("Use /opt-in first.")
        (self.agreed.add if agrees else self.agreed.discard)(person_id)


@asynccontextmanager
async def asking(consents: FakeConsents) -> AsyncIterator[tuple[LocalDiscord, FakeRooms, int]]:
    """Start a local Discord with a notice that asks, and return it with the message. The bot is in the lounge."""
    rooms = FakeRooms()
    commands = partial(add_participation_commands, participation=cast("Any", consents))
    async with (
        open_discord() as opened,
        connected(settings_for(opened.discord), rooms, [commands]) as client,
    ):
        rooms.room_channel = room_channel_in(client, LOUNGE)
        assert await rooms.room_channel.write_notice(verbatim("I ask."), asks=True)
        assert await rooms.room_channel.write_notice(verbatim("I tell."))
        asked, told = opened.discord.messages
        assert not told.payload.get("components")
        yield opened.discord, rooms, asked.id


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
    async with asking(consents) as (local, rooms, message_id):
        rooms.room_channel = None if where is None else FakeRoomChannel(channel_id=where)
        assert await pressed(local, message_id, "Hear me") == NOT_LISTENING_HERE
        assert consents.agreed == set()


@pytest.mark.parametrize(
    ("person", "always", "told"),
    [
        (ADA, True, MAY_SPEAK),
        (BEN, False, MAY_SPEAK),
        (BEN, True, SILENCED_FOR_GOOD),
        (CHLOE, False, f"Only {PEOPLE[Who.PRESENT_OR_MANAGERS]} can do that."),
    ],
)
async def test_a_press_is_a_talk_command(local: LocalDiscord, person: int, always: bool, told: str) -> None:
    """With its rules, and an answer that only the person sees. It stands below the sentence about the silence, and
    below no other. Ada moderates, Ben is in the channel, and Chloe is not.
    """
    participation, rooms = participation_with(MemoryServerSettings(), FakeOptOuts()), FakeRooms()
    commands = partial(add_participation_commands, participation=participation)
    async with connected(settings_for(local), rooms, [commands]) as client:
        guild = await participation.of_guild(GUILD)
        guild.room = FakeRoom()
        await (participation.silence_always if always else participation.silence_for_now)(GUILD, by=ADA)
        room_channel = rooms.room_channel = room_channel_in(client, LOUNGE)
        await enters(local, rooms, BEN, LOUNGE)
        await room_channel.offer_talk(verbatim("I am silent."))
        await room_channel.write(verbatim("I am not."))
        silent, other = local.messages
        assert not other.payload.get("components")
        (reply,) = (await local.press(person, silent.id, "Talk again")).replies
        assert (reply.content, reply.ephemeral) == (told, True)
        is_over = not guild.silence.always and not guild.silence.applies("evening", now=0.0)
        assert is_over is (told == MAY_SPEAK)
