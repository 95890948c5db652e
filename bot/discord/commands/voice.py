"""/voice: the embedded voices, a sample of each in the channel, and which one speaks on this server.

A voice that is not installed is downloaded when a manager wants it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import discord
import structlog
from discord import app_commands

from bot.channel.markdown import in_message
from bot.discord.answers import MESSAGE_CHARS, Field, answer, defer, embed_in, guild_id_of, language_of
from bot.discord.commands.default_word import DEFAULT, means_default
from bot.discord.commands.store_failures import not_stored
from bot.discord.request_errors import REQUEST_ERRORS
from bot.errors import ModelError
from bot.models.voices import NO_SUCH_VOICE, VOICES, find_voice, replaced_sentence
from bot.texts.text import Text, in_language, joined, sentence_of, verbatim
from compaction.errors import StoreError
from voice.errors import SynthesisError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.discord.command_tree import CheckedCommandTree
    from bot.models.voices import EmbeddedVoice
    from bot.server_settings import ServerSettingsBook

log = structlog.get_logger()

USUAL = Text("My usual voice, as set by whoever runs me")
USUAL_VOICE_HERE = Text("I speak with my usual voice here.")
NOT_INSTALLED = Text(
    "I do not have this voice yet. Somebody who may manage the server can have it downloaded: /voice choose."
)
NEXT_SENTENCE = Text("This takes effect with my next sentence.")
# One change of an answer.
TELL_TIMEOUT_S = 10.0


class Voices(Protocol):
    """Installs and loads voices; `bot.models.loaded_voices.LoadedVoices` implements it."""

    def holds(self, voice: EmbeddedVoice) -> bool:
        """Return whether the voice was installed when somebody last looked."""

    async def look(self) -> None:
        """Look which voices are installed."""

    def problem(self, voice: EmbeddedVoice) -> Text | None:
        """Return why the voice cannot speak now, or None if nothing is known against it."""

    async def install(self, voice: EmbeddedVoice, report: Callable[[float], Awaitable[None]]) -> None:
        """Download the voice. `report` gets the megabytes so far. Raises `ModelError`."""

    async def load(self, voice: EmbeddedVoice) -> None:
        """Load the voice. Raises `SynthesisError`."""


class SamplePlayer(Protocol):
    """Plays samples in voice channels; `bot.room.supervisor.RoomSupervisor` implements it."""

    async def play_sample(self, guild_id: int, voice: EmbeddedVoice) -> Text | None:
        """Say the voice's sample in the bot's voice channel; return why it was not said, or None. Raises
        `SynthesisError`.
        """


@dataclass(frozen=True, slots=True)
class VoiceCommands:
    """What the commands need. `speech_to_speech`: a model of that kind answers with a voice of its own."""

    voices: Voices
    servers: ServerSettingsBook
    player: SamplePlayer
    speech_to_speech: bool = False


def add_voice(tree: CheckedCommandTree, *, commands: VoiceCommands) -> None:
    """Put /voice on `tree`."""
    group: app_commands.Group = app_commands.Group(
        name="voice", description="The voices that I can speak with.", guild_only=True
    )

    @group.command(name="show", description="The voices that I can speak with, and the one that I speak with here.")
    async def show(interaction: discord.Interaction) -> None:
        await commands.voices.look()
        current = commands.servers.of(guild_id_of(interaction)).voice
        await answer(interaction, verbatim(""), embed=voices_embed(language_of(interaction), commands.voices, current))

    @group.command(name="hear", description="Hear a voice in my voice channel.")
    @app_commands.describe(name="A voice.")
    async def hear(interaction: discord.Interaction, name: str) -> None:
        await _hear(interaction, name, commands, may_install=tree.user_of(interaction).is_manager)

    @group.command(name="choose", description="Choose the voice that I speak with on this server.")
    @app_commands.describe(name="A voice; default: my usual one.")
    async def choose(interaction: discord.Interaction, name: str) -> None:
        await choose_voice(interaction, name, commands)

    @hear.autocomplete("name")
    async def complete_heard(interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
        return voice_choices(current, language_of(interaction), commands.voices)

    @choose.autocomplete("name")
    async def complete_chosen(interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
        return voice_choices(current, language_of(interaction), commands.voices, with_default=True)

    tree.add_command(group)


def voices_embed(language: str, voices: Voices, current: str | None) -> discord.Embed:
    """Return the list of all voices. `current`: the name that the server has chosen; None: the usual voice."""
    fields = [
        Field(
            verbatim(voice.title), described(voice, is_here=voices.holds(voice), is_chosen=voice.name == current), True
        )
        for voice in VOICES
    ]
    hint = Text("/voice hear plays one in my voice channel, /voice choose sets it for this server.")
    return embed_in(language, title=Text("Voices"), text=joined((voice_sentence(voices, current), hint)), fields=fields)


def voice_sentence(voices: Voices, current: str | None) -> Text:
    """Return which voice speaks on a server. `current`: the name that it has chosen; None: the usual voice."""
    if current is None:
        return USUAL_VOICE_HERE
    voice = find_voice(current)
    problem = NO_SUCH_VOICE if voice is None else voices.problem(voice)
    if problem is not None:
        return replaced_sentence(current, problem)
    return Text("I speak with the voice {voice} here.", voice=current.capitalize())


def described(voice: EmbeddedVoice, *, is_here: bool, is_chosen: bool) -> Text:
    """Return language, engine, licence and size of a voice, and whether it is installed or chosen."""
    size = verbatim("") if is_here else Text("To download: {size} MB.", size=voice.model.size_mb)
    facts = Text(
        "{language}. {engine}, {licence}.", language=voice.language, engine=voice.engine, licence=voice.licence
    )
    return joined((facts, size, Text("I speak with it here.") if is_chosen else verbatim("")))


def voice_choices(
    current: str, language: str, voices: Voices, *, with_default: bool = False
) -> list[app_commands.Choice[str]]:
    """Return the voices whose name or language contains what somebody has typed, and how large a download would be."""
    typed = current.strip().casefold()
    known = {}
    for voice in VOICES:
        size = None if voices.holds(voice) else Text("to download: {size} MB", size=voice.model.size_mb)
        facts = [in_language(each, language) for each in (voice.language, voice.engine, size) if each is not None]
        known[voice.name] = f"{voice.title}: {', '.join(facts)}"
    if with_default:
        known[DEFAULT] = in_language(USUAL, language)
    return [
        app_commands.Choice(name=shown, value=name)
        for name, shown in known.items()
        if typed in shown.casefold() or name.startswith(typed)
    ][:25]


async def _hear(interaction: discord.Interaction, name: str, commands: VoiceCommands, *, may_install: bool) -> None:
    voice = find_voice(name)
    if voice is None:
        await answer(interaction, _unknown())
        return
    await commands.voices.look()
    if not commands.voices.holds(voice) and not may_install:
        await answer(interaction, NOT_INSTALLED)
        return
    await defer(interaction)
    refused = await _make_ready(interaction, voice, commands.voices)
    if refused is None:
        try:
            refused = await commands.player.play_sample(guild_id_of(interaction), voice)
        except SynthesisError as error:
            refused = sentence_of(error)
    await _tell(
        interaction, refused or Text("That was {voice}. /voice choose sets it for this server.", voice=voice.title)
    )


async def choose_voice(interaction: discord.Interaction, name: str, commands: VoiceCommands) -> None:
    """Answer a manager who chooses a voice for the server: download and load it if needed, then store the choice."""
    voice = find_voice(name)
    if voice is None and not means_default(name, language_of(interaction)):
        await answer(interaction, _unknown())
        return
    await defer(interaction)
    if voice is not None and (refused := await _make_ready(interaction, voice, commands.voices)) is not None:
        await _tell(interaction, joined((refused, Text("I go on with the voice that I have."))))
        return
    guild_id = guild_id_of(interaction)
    chosen = None if voice is None else voice.name
    try:
        await commands.servers.change(guild_id, lambda now: replace(now, voice=chosen), by=interaction.user.id)
    except StoreError as error:
        await _tell(interaction, not_stored(error))
        return
    told = USUAL_VOICE_HERE
    if voice is not None:
        told = Text("I speak with the voice {voice} here.", voice=voice.title)
    effect = NEXT_SENTENCE
    if commands.speech_to_speech:
        effect = Text("A speech-to-speech model answers with its own voice; this one speaks whenever that one cannot.")
    await _tell(interaction, joined((told, effect)))


async def _make_ready(interaction: discord.Interaction, voice: EmbeddedVoice, voices: Voices) -> Text | None:
    """Download and load a voice; tell how far the download is. Return why the voice cannot be had, or None."""

    async def report(megabytes: float) -> None:
        arrived = min(round(megabytes), voice.model.size_mb)
        await _tell(
            interaction,
            Text(
                "I am downloading the voice {voice}: {arrived} of {size} MB.",
                voice=voice.title,
                arrived=arrived,
                size=voice.model.size_mb,
            ),
        )

    try:
        await voices.look()
        if not voices.holds(voice):
            await report(0)
            await voices.install(voice, report)
        await voices.load(voice)
    except ModelError as error:
        return Text("The voice {voice} cannot be had. {why}", voice=voice.title, why=sentence_of(error))
    except SynthesisError as error:
        return sentence_of(error)
    return None


async def _tell(interaction: discord.Interaction, text: Text) -> None:
    """Replace the private answer. Discord takes changes for a quarter of an hour; what comes later is not told."""
    sentence = in_message(text, language_of(interaction))[:MESSAGE_CHARS]
    try:
        async with asyncio.timeout(TELL_TIMEOUT_S):
            await interaction.edit_original_response(content=sentence, allowed_mentions=discord.AllowedMentions.none())
    except REQUEST_ERRORS as error:
        log.warning("voice_answer_not_written", error_class=type(error).__name__)


def _unknown() -> Text:
    return Text("I have these voices: {voices}.", voices=", ".join(voice.title for voice in VOICES))
