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
from tests.bot.discord.commands.local_server import answer_to, server_with
from tests.bot.discord.test_client import ADA, BEN
from tests.bot.participation.test_all_guilds import FakeRoom
from tests.fakes.choices import FakeGuildChoices, FakeOptOuts
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from bot.participation.all_guilds import OptOuts
    from bot.participation.guild_participation import GuildParticipation
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


def participation_with(choices: FakeGuildChoices, opt_outs: OptOuts) -> GuildParticipations:
    """Return the participation of a bot that was just started on these stores."""
    return GuildParticipations(choices, opt_outs, ParticipationSettings(), wake_names=("Roomtone",), clock=FakeClock())


def local_discord(participation: GuildParticipations) -> AbstractAsyncContextManager[LocalDiscord]:
    """Start the local Discord with the commands."""
    return server_with(partial(add_participation_commands, participation=participation))


@asynccontextmanager
async def online(choices: FakeGuildChoices | None = None) -> AsyncIterator[Table]:
    """Start the local Discord and the client, with the bot in a voice channel."""
    participation = participation_with(choices or FakeGuildChoices(), FakeOptOuts())
    async with local_discord(participation) as local:
        guild = await participation.of_guild(local.guild.id)
        guild.room = FakeRoom()
        yield Table(local, participation, guild)


@pytest.mark.asyncio
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


@pytest.mark.asyncio
async def test_a_moderator_silences_it_for_good() -> None:
    """Only a moderator can start and end a permanent silence; a member gets an answer that says so."""
    async with online() as table:
        refused = await table.say(BEN, "quiet", always=True)
        assert refused == NOT_A_MODERATOR
        assert table.silences_for_good == [False]
        assert "until a moderator uses /talk" in await table.say(ADA, "quiet", always=True)
        assert await table.say(BEN, "talk") == SILENCED_FOR_GOOD
        assert await table.say(ADA, "talk") == "I may speak again."
        assert table.silences_for_good == [False, True, True, False]


@pytest.mark.asyncio
async def test_who_does_not_want_to_be_heard_is_not() -> None:
    """A person who opts out is not heard until they opt in again."""
    async with online() as table:
        answer = await table.say(BEN, "opt-out")
        assert answer.startswith("I no longer hear you on this server")
        assert "no longer used. Shall I forget it too?" in answer
        assert table.guild.opted_out == {BEN}
        assert await table.say(BEN, "opt-in") == "I hear you again on this server."
        assert table.guild.opted_out == frozenset()


@pytest.mark.asyncio
async def test_who_opts_in_where_the_bot_asks_is_told_to_agree() -> None:
    """To opt in is not to agree: there the bot hears only who presses the button, and says so."""
    async with online() as table:
        table.guild.asks = True
        await table.say(BEN, "opt-out")
        assert (await table.say(BEN, "opt-in")).startswith("Your opt-out on this server is over. I hear only")
        assert table.guild.excludes(BEN)


@pytest.mark.asyncio
async def test_nobody_opts_out_and_in_without_end() -> None:
    """Each opt-out ends the reply in progress, so opting in has a limit. Nobody waits to opt out."""
    async with online() as table:
        for number in range(4):
            assert (await table.say(BEN, "opt-out")).startswith("I no longer hear you")
            told = await table.say(BEN, "opt-in")
            assert ("Please wait " in told) is (number == 3)
        assert table.guild.opted_out == {BEN}


@pytest.mark.asyncio
async def test_a_store_that_fails_is_told() -> None:
    """If a choice cannot be stored, the answer says so with the remedy. The choice applies, and is stored later."""
    choices = FakeGuildChoices()
    async with online(choices) as table:
        choices.broken = True
        assert await table.say(BEN, "quiet") == (
            "This is in effect, but I could not store it yet. I keep trying. If I am restarted before that, it is "
            "lost: choose it again. The disk is full. Make room."
        )
        assert table.guild.silence.applies("evening", now=0.0)


@pytest.mark.asyncio
@pytest.mark.parametrize("asks", [False, True])
async def test_who_opts_out_while_the_database_is_away_is_told_what_holds(asks: bool) -> None:
    """What they chose is in effect; the answer says that it is not stored yet, and what they have to do then."""
    opt_outs = FakeOptOuts()
    participation = participation_with(FakeGuildChoices(), opt_outs)
    async with local_discord(participation) as local:
        guild = await participation.of_guild(local.guild.id)
        guild.room, guild.asks = FakeRoom(), asks
        opt_outs.broken = True
        answer = await answer_to(local, BEN, "opt-out")
        assert guild.excludes(BEN)
        assert "could not store that yet" in answer
        assert "use /opt-out once more" in answer
        answer = await answer_to(local, BEN, "opt-in")
        assert guild.excludes(BEN) is asks
        assert "could not store that yet" in answer
        assert "use /opt-in once more" in answer
        assert ("*Hear me*" in answer) is asks


@pytest.mark.asyncio
async def test_where_nothing_can_be_read_nothing_is_said_to_hold() -> None:
    """The bot was just started and the database is away: nothing was changed, and the answer says so."""
    choices, opt_outs = FakeGuildChoices(), FakeOptOuts()
    choices.broken = opt_outs.broken = True
    told = "I cannot look up now how I take part on this server, so nothing was changed. The disk is full. Make room."
    async with local_discord(participation_with(choices, opt_outs)) as local:
        assert await answer_to(local, BEN, "quiet") == told
        assert await answer_to(local, ADA, "quiet", always=True) == told
        opt_outs.broken = False
        assert (await answer_to(local, BEN, "opt-out")).startswith("I no longer hear you on this server")
        assert opt_outs.out == {local.guild.id: frozenset({BEN})}
