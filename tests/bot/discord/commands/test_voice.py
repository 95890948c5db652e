"""/voice against the local Discord: people in the channel hear the voices."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from bot.discord.commands.voice import VoiceCommands, add_voice, voice_choices
from bot.discord.connection import connected
from bot.models.voices import VOICES
from bot.texts.text import Text
from rehearsal.discord.server import LocalDiscord
from rehearsal.pytest_plugin import open_discord
from tests.bot.discord.client import ADA, BEN, FakeRooms, settings_for
from tests.fakes.voices import FakeVoices
from tests.patience import PATIENCE_S, settle

GUILD = 500


class Server:
    """A local Discord with the bot and the command."""

    def __init__(self, local: LocalDiscord) -> None:
        self.local = local
        self.voices = FakeVoices()
        self.rooms = FakeRooms()

    async def use(self, user_id: int = ADA, **options: object) -> Any:
        result = await self.local.invoke(user_id, "voice", options)
        await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
        return result

    async def told(self, ending: str, user_id: int = ADA, **options: object) -> str:
        """Use a command and return the private answer, once it has this in it."""
        result = await self.use(user_id, **options)
        await result.until(lambda current: ending in str(current.replies[-1].content), timeout_s=PATIENCE_S)
        assert all(reply.ephemeral for reply in result.replies)
        return str(result.replies[-1].content)


@asynccontextmanager
async def online() -> AsyncIterator[Server]:
    async with open_discord() as opened:
        server = Server(opened.discord)
        commands = VoiceCommands(server.voices, server.rooms)
        adder = partial(add_voice, commands=commands)
        async with connected(settings_for(server.local), server.rooms, [adder]) as client:
            server.rooms.room_channel = client.find_channel(GUILD, 600)
            yield server


async def test_people_in_the_channel_hear_a_sample() -> None:
    """Who is in the channel hears an installed voice in its language; only managers have others downloaded."""
    async with online() as server:
        assert "Only people in my voice channel" in await server.told("Only", BEN, name="joe")
        for user_id in (ADA, BEN):
            await server.local.join(user_id, channel_id=600)
        await settle(lambda: len(server.rooms.movements) == 2)
        assert "voice Joe" in await server.told("You heard", BEN, name="joe")
        assert "do not have" in await server.told("not have", BEN, name="siwis")
        assert "voice Siwis" in await server.told("You heard", name="siwis")
        assert [sentence.split(",")[0] for sentence in server.rooms.played] == ["Hello", "Bonjour"]
        server.rooms.refuses = Text("I am silent at present. /talk lets me speak again.")
        assert "/talk" in await server.told("silent", name="joe")


def test_what_somebody_types_finds_voices_by_name_and_language() -> None:
    """Suggestions are in the person's language and tell the size of a download before anybody asks for it."""
    voices = FakeVoices()
    assert [choice.value for choice in voice_choices("fran", "de", voices)] == ["siwis"]
    assert voice_choices("th", "de", voices)[0].name == "Thorsten: Deutsch, Piper, herunterzuladen: 64 MB"
    assert voice_choices("joe", "en", voices)[0].name == "Joe: American English, Piper"
    assert len(voice_choices("", "en", voices)) == len(VOICES)
