"""/quiet, /talk, /opt-out and /opt-in against the local Discord, and the buttons that do the same: who may use each."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.channel.port import ChatError
from bot.discord.access import PEOPLE, Who
from bot.discord.commands.participation import HEARD, NOT_HEARD, NOT_LISTENING_HERE, add_participation_commands
from bot.discord.connection import connected
from bot.discord.place import DiscordPlace
from bot.participation.all_guilds import MAY_SPEAK, SILENCED_FOR_GOOD, GuildParticipations
from bot.participation.settings import ParticipationSettings
from bot.server_settings import MemoryServerSettings, ServerSettingsBook
from bot.texts.text import verbatim
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.commands.local_server import answer_to, server_with
from tests.bot.discord.test_client import ADA, BEN, FakeSupervisor, settings_for, settle
from tests.bot.participation.test_all_guilds import FakeRoom
from tests.fakes.choices import FailingServerSettings, FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.place import FakePlace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from bot.participation.all_guilds import GuildParticipation, OptOuts
    from bot.server_settings import ServerSettingsStore


NOT_A_MODERATOR = f"Only {PEOPLE[Who.MODERATORS]} can do that."


class Table:
    """A local Discord with the bot's client and the commands, and the participation that the commands change."""

    def __init__(self, local: LocalDiscord, participation: GuildParticipations, guild: GuildParticipation) -> None:
        self.local = local
        self.participation = participation
        self.guild = guild
        # Whether a moderator's silence was in effect after each command.
        self.silences_for_good: list[bool] = []

    async def say(self, user_id: int, command: str, **options: object) -> str:
        """Use a command, and return the answer that only this person sees."""
        answer = await answer_to(self.local, user_id, command, **options)
        self.silences_for_good.append(self.guild.silence.always)
        return answer


def participation_with(stored: ServerSettingsStore, opt_outs: OptOuts) -> GuildParticipations:
    """Return the participation of a bot that was just started on these stores."""
    servers = ServerSettingsBook(stored)
    return GuildParticipations(servers, opt_outs, ParticipationSettings(), wake_names=("Roomtone",), clock=FakeClock())


def local_discord(participation: GuildParticipations) -> AbstractAsyncContextManager[LocalDiscord]:
    """Start the local Discord with the commands."""
    return server_with(partial(add_participation_commands, participation=participation))


@asynccontextmanager
async def online() -> AsyncIterator[Table]:
    """Start the local Discord and the client, with the bot in a voice channel."""
    participation = participation_with(MemoryServerSettings(), FakeOptOuts())
    async with local_discord(participation) as local:
        guild = await participation.of_guild(local.guild.id)
        guild.room = FakeRoom()
        yield Table(local, participation, guild)


async def test_anybody_silences_it_for_now() -> None:
    """Every member can silence the bot until /talk or for some minutes."""
    async with online() as table:
        assert await table.say(BEN, "quiet") == "I am silent until /talk or the end of this session. I go on listening."
        assert table.guild.silence.applies("evening", now=0.0)
        assert await table.say(BEN, "talk") == "I may speak again."
        assert not table.guild.silence.applies("evening", now=0.0)
        assert (await table.say(BEN, "quiet", **{"for": 20})).startswith("I am silent for 20 minutes, or until /talk.")
        assert table.guild.silence.until is not None
        table.guild.room = None
        assert await table.say(BEN, "quiet") == "I am not in a voice channel here."


async def test_a_moderator_silences_it_for_good() -> None:
    """Only a moderator can start and end a permanent silence; a member gets an answer that says so."""
    async with online() as table:
        refused = await table.say(BEN, "silence")
        assert refused == NOT_A_MODERATOR
        assert table.silences_for_good == [False]
        assert "until a moderator uses /talk" in await table.say(ADA, "silence")
        assert await table.say(BEN, "talk") == SILENCED_FOR_GOOD
        assert await table.say(ADA, "talk") == "I may speak again."
        assert table.silences_for_good == [False, True, True, False]


async def test_who_does_not_want_to_be_heard_is_not() -> None:
    """A person who opts out is not heard until they opt in again."""
    async with online() as table:
        answer = await table.say(BEN, "opt-out")
        assert answer.startswith("I no longer hear you on this server")
        assert "no longer used. Shall I forget it too?" in answer
        assert table.guild.opted_out == {BEN}
        assert await table.say(BEN, "opt-in") == "I hear you again on this server."
        assert table.guild.opted_out == frozenset()


async def test_who_opts_in_where_the_bot_asks_is_told_to_agree() -> None:
    """To opt in is not to agree: there the bot hears only who presses the button, and says so."""
    async with online() as table:
        table.guild.asks = True
        await table.say(BEN, "opt-out")
        assert (await table.say(BEN, "opt-in")).startswith("Your opt-out on this server is over. I hear only")
        assert table.guild.excludes(BEN)


@pytest.mark.parametrize("asks", [False, True])
async def test_a_database_that_is_away_is_told(asks: bool) -> None:
    """What somebody chose holds; the answer says that it is not stored, and what they have to do."""
    stored, opt_outs = FailingServerSettings(), FakeOptOuts()
    participation = participation_with(stored, opt_outs)
    async with local_discord(participation) as local:
        guild = await participation.of_guild(local.guild.id)
        guild.room, guild.asks = FakeRoom(), asks
        stored.broken = opt_outs.broken = True
        for command in ("quiet", "opt-out", "opt-in"):
            answer = await answer_to(local, BEN, command)
            assert "I could not store it" in answer
            assert "Make room" in answer
            assert guild.excludes(BEN) is (command == "opt-out" or asks)
        assert ("*Hear me*" in answer) is asks
        assert guild.silence.applies("evening", now=0.0)


async def test_where_nothing_can_be_read_nothing_is_said_to_hold() -> None:
    """The bot was just started and the database is away: nothing was changed, and the answer says so."""
    opt_outs = FakeOptOuts()
    opt_outs.broken = True
    async with local_discord(participation_with(FailingServerSettings(), opt_outs)) as local:
        told = "That could not be stored. The disk is full. Make room."
        assert await answer_to(local, ADA, "silence") == told
        opt_outs.broken = False
        assert (await answer_to(local, BEN, "opt-out")).startswith("I no longer hear you on this server")
        assert opt_outs.out == {local.guild.id: frozenset({BEN})}


GUILD, LOUNGE, CHLOE = 500, 600, 2003


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
