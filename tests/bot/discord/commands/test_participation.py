"""/quiet, /talk, /opt-out and /opt-in against the local Discord: who may use each."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest

from bot.discord.access import PEOPLE, Who
from bot.discord.commands.participation import add_participation_commands
from bot.participation.all_guilds import SILENCED_FOR_GOOD, GuildParticipations
from bot.participation.settings import ParticipationSettings
from bot.server_settings import MemoryServerSettings, ServerSettingsBook
from tests.bot.discord.commands.local_server import answer_to, server_with
from tests.bot.discord.test_client import ADA, BEN
from tests.bot.participation.test_all_guilds import FakeRoom
from tests.fakes.choices import FailingServerSettings, FakeOptOuts
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from bot.participation.all_guilds import OptOuts
    from bot.participation.guild_participation import GuildParticipation
    from bot.server_settings import ServerSettingsStore
    from rehearsal.discord.server import LocalDiscord

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
