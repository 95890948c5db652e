"""/voice: hear one of the embedded voices in the channel. Which one speaks on a server is one of its settings.

A voice that is not installed is downloaded when a manager wants it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import discord
from discord import app_commands

from bot.channel.port import IN_NO_CHANNEL
from bot.discord.answers import answer, change, choices, defer, guild_id_of, language_of
from bot.discord.posting import attempt
from bot.errors import ModelError
from bot.models.voices import NO_SUCH_VOICE, VOICES, EmbeddedVoice, find_voice, replaced_sentence
from bot.texts.text import Text, in_language, joined, sentence_of, verbatim
from voice.errors import SynthesisError

if TYPE_CHECKING:
    from bot.discord.command_tree import CheckedCommandTree
    from bot.models.loaded_voices import LoadedVoices
    from bot.room.rooms import Rooms

NOT_INSTALLED = Text("I do not have this voice yet. If a server manager chooses it in /settings, I download it.")
ONE_OF_ITS_OWN = Text(
    "Usually my speech-to-speech model has its own voice. I use this voice when that model cannot speak."
)


@dataclass(frozen=True, slots=True)
class VoiceCommands:
    """What has voices, and the rooms in which they are heard. `speech_to_speech`: a model of that kind answers with a
    voice of its own.
    """

    voices: LoadedVoices
    rooms: Rooms
    speech_to_speech: bool = False


def add_voice(tree: CheckedCommandTree, *, commands: VoiceCommands) -> None:
    """Put /voice on `tree`."""

    @tree.command(name="voice", description="Listen to one of my voices in my voice channel.")
    @app_commands.describe(name="A voice.")
    @app_commands.guild_only()
    async def hear(interaction: discord.Interaction, name: str) -> None:
        await _hear(interaction, name, commands, may_install=tree.user_of(interaction).is_manager)

    @hear.autocomplete("name")
    async def complete(interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
        return voice_choices(current, language_of(interaction), commands.voices)


def voice_sentence(commands: VoiceCommands, current: str | None) -> Text:
    """Return which voice speaks on a server. `current`: the name that it has chosen; None: the usual voice."""
    sentence = Text("I speak with my usual voice here.")
    if current is not None:
        voice = find_voice(current)
        problem = NO_SUCH_VOICE if voice is None else commands.voices.problem(voice)
        if problem is not None:
            return replaced_sentence(current, problem)
        sentence = Text("I speak with the voice {voice} here.", voice=current.capitalize())
    return joined((sentence, ONE_OF_ITS_OWN)) if commands.speech_to_speech else sentence


def voice_facts(voice: EmbeddedVoice, voices: LoadedVoices) -> Text:
    """Return a voice's name, language and engine, and how large a download would be."""
    size = "" if voices.holds(voice) else Text("to download: {size} MB", size=voice.size_mb)
    facts = joined((voice.language, verbatim(voice.engine.name), size), ", ")
    return Text("{voice}: {facts}", voice=voice.title, facts=facts)


def voice_choices(current: str, language: str, voices: LoadedVoices) -> list[app_commands.Choice[str]]:
    """Return the voices whose name or language contains what somebody has typed."""
    return choices([(in_language(voice_facts(voice, voices), language), voice.name) for voice in VOICES], current)


async def _hear(interaction: discord.Interaction, name: str, commands: VoiceCommands, *, may_install: bool) -> None:
    voice = find_voice(name)
    if voice is None:
        voices = ", ".join(voice.title for voice in VOICES)
        await answer(interaction, Text("I have these voices: {voices}.", voices=voices))
        return
    await commands.voices.look()
    if not commands.voices.holds(voice) and not may_install:
        await answer(interaction, NOT_INSTALLED)
        return
    await defer(interaction)
    refused = await make_ready(voice, commands.voices, interaction)
    if refused is None:
        try:
            room = commands.rooms.open(guild_id_of(interaction))
            refused = IN_NO_CHANNEL if room is None else await room.play_sample(voice)
        except SynthesisError as error:
            refused = sentence_of(error)
    await follow_up(
        interaction,
        refused
        or Text(
            "You heard the voice {voice}. If you want this voice on your server, choose it in /settings.",
            voice=voice.title,
        ),
    )


async def make_ready(voice: EmbeddedVoice, voices: LoadedVoices, interaction: discord.Interaction) -> Text | None:
    """Download and load a voice; the answer to `interaction` tells how far the download is. Return why the voice cannot
    be had, or None.
    """

    async def arrived(megabytes: float) -> None:
        size = voice.size_mb
        await follow_up(
            interaction,
            Text(
                "I am downloading the voice {voice}: {arrived} of {size} MB.",
                voice=voice.title,
                arrived=min(round(megabytes), size),
                size=size,
            ),
        )

    try:
        await voices.look()
        if not voices.holds(voice):
            await arrived(0)
            await voices.install(voice, arrived)
        await voices.load(voice)
    except ModelError as error:
        return Text("I cannot get the voice {voice}. {why}", voice=voice.title, why=sentence_of(error))
    except SynthesisError as error:
        return sentence_of(error)
    return None


async def follow_up(interaction: discord.Interaction, text: Text) -> None:
    """Replace the private answer. Discord takes changes for a quarter of an hour; what comes later is not told."""
    await attempt(change(interaction, text), None, event="voice_answer_not_written")
