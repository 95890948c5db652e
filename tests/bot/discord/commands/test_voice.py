"""/voice against the local Discord: people see and hear the voices, and managers choose one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from bot.discord.commands.voice import VoiceCommands, add_voice, voice_choices
from bot.discord.connection import connected
from bot.models.voices import VOICES
from bot.server_settings import no_server_settings
from bot.texts.text import Text
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.test_client import ADA, BEN, FakeSupervisor, settings_for, settle
from tests.fakes.voices import FakePlayer, FakeVoices
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

GUILD = 500


class Server:
    """A local Discord with the bot and the command."""

    def __init__(self, local: LocalDiscord) -> None:
        self.local = local
        self.book, self.voices, self.player = no_server_settings(), FakeVoices(), FakePlayer()
        self.supervisor = FakeSupervisor()
        # What an answer said before it said what it says at the end.
        self.told_before: list[str] = []

    async def use(self, command: str, user_id: int = ADA, **options: object) -> Any:
        result = await self.local.invoke(user_id, f"voice {command}", options)
        await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
        return result

    async def told(self, command: str, ending: str, user_id: int = ADA, **options: object) -> str:
        """Use a command and return the private answer, once it has this in it."""
        result = await self.use(command, user_id, **options)
        await result.until(lambda current: ending in str(current.replies[-1].content), timeout_s=PATIENCE_S)
        assert all(reply.ephemeral for reply in result.replies)
        self.told_before = [str(reply.content) for reply in result.replies[:-1]]
        return str(result.replies[-1].content)


@asynccontextmanager
async def online(*, speech_to_speech: bool = False) -> AsyncIterator[Server]:
    async with LocalDiscord() as local:
        server = Server(local)
        commands = VoiceCommands(server.voices, server.book, server.player, speech_to_speech=speech_to_speech)
        adder = partial(add_voice, commands=commands)
        async with connected(settings_for(local), server.supervisor, [adder], servers=server.book) as client:
            server.supervisor.place = client.place(GUILD, 600)
            yield server


@pytest.mark.asyncio
async def test_everybody_sees_the_voices() -> None:
    """The list has language, engine, licence and size of each voice, and which one speaks here."""
    async with online() as server:
        (embed,) = (await server.use("show", BEN)).replies[0].payload["embeds"]
        fields = {field["name"]: field["value"] for field in embed["fields"]}
        assert fields["Joe"] == "American English. Piper, MIT (data CC0)."
        assert fields["Emma"] == "British English. Kokoro, Apache-2.0. To download: 97 MB."
        assert "usual voice" in embed["description"]
        await server.told("choose", "next sentence", name="joe")
        (embed,) = (await server.use("show", BEN)).replies[0].payload["embeds"]
        assert embed["description"].startswith("I speak with the voice Joe here.")
        assert embed["fields"][0]["value"].endswith("I speak with it here.")
        server.voices.here.remove("joe")
        (embed,) = (await server.use("show", BEN)).replies[0].payload["embeds"]
        assert "I cannot speak with the voice Joe now and use my usual one. Its files" in embed["description"]


@pytest.mark.asyncio
async def test_a_manager_chooses_a_voice_and_reads_how_far_its_download_is() -> None:
    """A voice that is not here is downloaded; the choice is stored and applies to the next sentence."""
    async with online() as server:
        told = await server.told("choose", "next sentence", name="Emma")
        assert told == "I speak with the voice Emma here. This takes effect with my next sentence."
        assert server.told_before == [f"I am downloading the voice Emma: {part} of 97 MB." for part in (0, 34)]
        assert server.book.of(GUILD).voice == "emma"
        assert "emma" in server.voices.here
        assert "my usual voice" in await server.told("choose", "next sentence", name="default")
        assert server.book.of(GUILD).voice is None
        assert "I have these voices: Joe, Kristin" in await server.told("choose", "voices", name="otto")
        assert "members who may manage" in await server.told("choose", "Only", BEN, name="joe")


@pytest.mark.asyncio
async def test_a_voice_that_cannot_be_had_changes_nothing() -> None:
    """If a voice can be neither downloaded nor loaded, a sentence says why and the old one stays."""
    async with online() as server:
        server.voices.unreachable = "The model hub cannot be reached."
        told = await server.told("choose", "I go on", name="thorsten")
        assert told.startswith("The voice Thorsten cannot be had. The model hub cannot be reached. I go on")
        server.voices.unreachable = "A word too many. " * 200
        told = await server.told("choose", "A word", name="thorsten")
        assert len(told) == 2_000
        server.voices.broken = True
        assert "cannot be read. I go on" in await server.told("choose", "I go on", name="joe")
        assert server.book.of(GUILD).voice is None


@pytest.mark.asyncio
async def test_people_in_the_channel_hear_a_sample() -> None:
    """Who is in the channel hears an installed voice in its language; only managers have others downloaded."""
    async with online() as server:
        assert "Only people in my voice channel" in await server.told("hear", "Only", BEN, name="joe")
        for user_id in (ADA, BEN):
            await server.local.join(user_id, channel_id=600)
        await settle(lambda: len(server.supervisor.movements) == 2)
        assert "That was Joe." in await server.told("hear", "That was", BEN, name="joe")
        assert "I do not have this voice yet." in await server.told("hear", "not have", BEN, name="siwis")
        assert "That was Siwis." in await server.told("hear", "That was", name="siwis")
        assert [sentence.split(",")[0] for sentence in server.player.played] == ["Hello", "Bonjour"]
        server.player.refuses = Text("I am silent at present. /talk lets me speak again.")
        assert "/talk" in await server.told("hear", "silent", name="joe")


@pytest.mark.asyncio
async def test_with_speech_to_speech_the_voice_is_for_when_that_fails() -> None:
    """The answer says when the choice applies, if a model speaks for itself."""
    async with online(speech_to_speech=True) as server:
        assert "whenever that one cannot" in await server.told("choose", "model", name="joe")


def test_what_somebody_types_finds_voices_by_name_and_language() -> None:
    """Suggestions are in the person's language and tell the size of a download before anybody asks for it."""
    voices = FakeVoices()
    assert [choice.value for choice in voice_choices("fran", "de", voices)] == ["siwis"]
    assert voice_choices("th", "de", voices)[0].name == "Thorsten: Deutsch, Piper, herunterzuladen: 64 MB"
    assert voice_choices("joe", "en", voices)[0].name == "Joe: American English, Piper"
    assert len(voice_choices("", "en", voices, with_default=True)) == len(VOICES) + 1
