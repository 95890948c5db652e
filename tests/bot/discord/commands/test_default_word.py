"""The word `default`, which takes a server's choice back, as people type it in each language."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from bot.discord.commands.default_word import means_default
from bot.discord.commands.participation import add_participation_commands
from bot.discord.commands.persona import add_persona
from bot.discord.commands.settings import add_settings_command
from bot.discord.commands.voice import VoiceCommands
from bot.discord.connection import connected
from bot.guild import GuildChoice
from bot.participation.all_guilds import GuildParticipations
from bot.participation.settings import ParticipationSettings
from bot.server_settings import ServerSettings, no_server_settings
from rehearsal.discord.guild.spec import GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.commands.test_settings import operator
from tests.bot.discord.test_client import FakeSupervisor, settings_for
from tests.fakes.choices import FakeGuildChoices, FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.voices import FakePlayer, FakeVoices

if TYPE_CHECKING:
    from rehearsal.discord.interactions.result import InteractionReply

DORA = 2004
GUILD = GuildSpec(people=(Member(DORA, "Dora", moderator=True, locale="de"),))


@pytest.mark.asyncio
async def test_the_word_that_discord_shows_takes_a_choice_back() -> None:
    """A German manager reads `standard` among the choices of /sprechmodus, and types it where any text is taken."""
    choices, book = FakeGuildChoices(), no_server_settings()
    choices.stored[GUILD.id] = GuildChoice(wake_names=("Jeeves",), persona="You are a dry innkeeper.")
    await book.change(GUILD.id, lambda _: ServerSettings(language="en", voice="joe", notice="Hear ye."), by=DORA)
    participation = GuildParticipations(
        choices, FakeOptOuts(), ParticipationSettings(), wake_names=("Roomtone",), clock=FakeClock()
    )
    commands = [
        partial(add_persona, choices=choices),
        partial(add_participation_commands, participation=participation),
        partial(
            add_settings_command,
            servers=book,
            participation=participation,
            operator=operator(),
            voice_commands=VoiceCommands(FakeVoices(), book, FakePlayer()),
        ),
    ]
    async with (
        LocalDiscord(guild=GUILD) as local,
        connected(settings_for(local), FakeSupervisor(), commands, servers=book),
    ):

        async def typed(command: str, **options: str) -> InteractionReply:
            return (await local.invoke(DORA, command, options)).replies[0]

        assert "wie eingestellt" in (await typed("persona", text=" Standard ")).content
        assert (await typed("wake-names", names="Standard")).content == "Ich höre auf: Roomtone."
        await typed("settings notice", text="standard")
        await typed("settings language", language="standard")
        await typed("settings voice", name="standard")
    assert choices.stored[GUILD.id] == GuildChoice()
    assert book.of(GUILD.id) == ServerSettings()


@pytest.mark.parametrize(
    ("written", "language", "means"),
    [
        ("default", "en-US", True),
        (" Default ", "de", True),
        ("Standard", "de", True),
        ("standard", "en-GB", False),
        ("", "de", False),
        ("the default", "en-US", False),
    ],
)
def test_the_word_is_known_in_the_persons_language(written: str, language: str, means: bool) -> None:
    """The English word is one everywhere, because answers and descriptions name it."""
    assert means_default(written, language) is means
