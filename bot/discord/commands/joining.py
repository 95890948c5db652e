"""The slash commands /join, /leave and /status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import discord
import structlog
from discord import app_commands

from bot.background_task import owned_task
from bot.channel.port import COMING, HERE_ALREADY, ChatError, RoomChannel, UnfinishedWords
from bot.discord.answers import answer, answer_when_known, guild_id_of
from bot.discord.commands.setting_values import SettingError, written_language
from bot.discord.permissions import lacking_in
from bot.discord.voice_channels import FOR_EVERY_AGE, is_age_allowed, member_of, voice_channel_of
from bot.errors import KNOWN_ERRORS
from bot.server_settings import ListenRequest, ListenTarget, ServerSettings, ServerSettingsBook
from bot.texts.text import Text, joined, sentence_of
from bot.viewers import hears
from voice.transport.discord_gateway import VoiceChannel

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bot.discord.command_tree import CheckedCommandTree
    from bot.room.rooms import Rooms

    FindChannel = Callable[[int, int], RoomChannel | None]

log = structlog.get_logger()

Captions = Literal["thread", "off"]
# The channel may be one that who asks cannot see, so it is not named.
ELSEWHERE = Text("I am in another voice channel. Somebody there, or a server manager, can send me away with /leave.")

NO_THREAD_HERE = Text(
    "I cannot begin a thread here. Use the command in a normal text channel, or in the chat of your voice channel."
)
ONE_OF_BOTH = Text(
    "Choose only one of them. With `listen` I only write. With `captions` I write and also talk with you."
)
CAPTIONS_BEGIN = Text("From now on I write captions of what is said in {channel}.")
CAPTIONS_END = Text(
    "I have stopped writing captions. If *Writing down* in /settings asks for captions, I write them "
    "again in the next session."
)
WRITES_NOTHING_DOWN = Text(
    "I do not post here what is said, because everybody who can read this channel would read it. "
    "Server managers can allow it: *Writing down* in /settings."
)

# How much /status shows of what people are saying at the moment.
MOST_SPEAKERS = 4
MOST_WORDS_CHARS = 200


def add_room_commands(
    tree: CheckedCommandTree, rooms: Rooms, servers: ServerSettingsBook, find_channel: FindChannel
) -> None:
    """Put the commands on `tree`. `servers`: what each has chosen. `find_channel` returns a voice channel by the ids of
    guild and channel.
    """

    @tree.command(
        name="join", description="Call me into your voice channel. I listen, remember what you say, and talk with you."
    )
    @app_commands.describe(
        listen="I only write down. file: you get it when I leave. thread: you can read it while you speak.",
        captions="I talk with you, and write what is said into a thread here. off: I stop writing.",
        translate="I translate what I write there into this language, for example: de",
    )
    @app_commands.guild_only()
    async def join(
        interaction: discord.Interaction,
        listen: ListenTarget | None = None,
        captions: Captions | None = None,
        translate: app_commands.Range[str, 1, 30] | None = None,
    ) -> None:
        try:
            request = _request(interaction, servers.of(guild_id_of(interaction)), listen, captions, translate)
        except (ChatError, SettingError) as error:
            await answer(interaction, sentence_of(error))
            return
        await _join(interaction, rooms, find_channel, captions, request)

    @tree.command(name="leave", description="Send me away from the voice channel.")
    @app_commands.guild_only()
    async def leave(interaction: discord.Interaction) -> None:
        guild_id = guild_id_of(interaction)
        room_channel = rooms.room_channel_of(guild_id)
        if room_channel is None:
            await answer(interaction, Text("I am not in a voice channel here."))
            return
        leaving = Text("I am leaving {channel}. I remember what was said.", channel=room_channel.name)
        await _answer_while(rooms.leave(guild_id), interaction, leaving)

    @tree.command(
        name="status",
        description="See where I am, what I remember, why I spoke or was silent, and what does not work.",
    )
    @app_commands.guild_only()
    async def status(interaction: discord.Interaction) -> None:
        guild_id = guild_id_of(interaction)
        room_channel = rooms.room_channel_of(guild_id)
        # A manager may ask from elsewhere.
        may_hear = room_channel is not None and hears(tree.viewer_of(interaction), room_channel.channel_id)
        room = rooms.open(guild_id) if may_hear else None
        words = () if room is None else room.unfinished()[:MOST_SPEAKERS]
        here = interaction.guild and room_channel and interaction.guild.get_channel(room_channel.channel_id)
        lacks = lacking_in(here) if isinstance(here, VoiceChannel) else None
        sentences = [rooms.status(guild_id), *map(unfinished_sentence, words), *([] if lacks is None else [lacks])]

        async def told() -> Text:
            if tree.user_of(interaction).is_owner:
                sentences.append(await rooms.all_servers())
            return joined(sentences, "\n")

        await answer_when_known(interaction, told())


def unfinished_sentence(words: UnfinishedWords) -> Text:
    """Return what somebody is saying in a sentence: of long speech the end."""
    text = words.text if len(words.text) <= MOST_WORDS_CHARS else f"… {words.text[-MOST_WORDS_CHARS:]}"
    return Text("{name} is saying: {words}", name=words.name, words=text)


async def _answer_while(change: Coroutine[Any, Any, object], interaction: discord.Interaction, sentence: Text) -> None:
    """Begin `change` at once and answer meanwhile, so that the next command, which may come before the answer has left,
    finds the change begun. *Cancellation*: cancels the change.
    """
    async with owned_task(change, name="room-command") as changing:
        await answer(interaction, sentence)
        await changing


def _request(
    interaction: discord.Interaction,
    settings: ServerSettings,
    listen: ListenTarget | None,
    captions: Captions | None,
    translate: str | None,
) -> ListenRequest | None:
    """Return how what is said is to be written down, or None. Raises `ChatError`, and `SettingError`."""
    if listen is not None and captions is not None:
        raise ChatError(ONE_OF_BOTH)
    # Who wants a translation, and no file, wants to read it meanwhile.
    target = listen or captions or ("thread" if translate else None)
    if target is None or target == "off":
        return None
    language = written_language([translate or ""]) or settings.captions_language
    if not settings.posts_transcripts:
        raise ChatError(WRITES_NOTHING_DOWN)
    if target == "thread" and (refused := _thread_refusal(interaction)) is not None:
        raise ChatError(refused)
    return ListenRequest(target, interaction.channel_id or 0, captions=listen is None, language=language)


def _thread_refusal(interaction: discord.Interaction) -> Text | None:
    """Return why the words of the voice channel may not be written into the one where the command was typed, or None.

    Whoever brings the words of one channel into another must be allowed to write them there themselves.
    """
    channel, allowed = interaction.channel, interaction.permissions
    if not isinstance(channel, discord.TextChannel | VoiceChannel) or channel.type is discord.ChannelType.news:
        return NO_THREAD_HERE
    if isinstance(channel, discord.TextChannel) and not allowed.create_public_threads:
        return Text("You are not allowed to begin threads in this channel, so I do not begin one for you.")
    here = voice_channel_of(member_of(interaction))
    if here is not None and not is_age_allowed(here, channel):
        return FOR_EVERY_AGE.fill(channel=channel.name)
    is_other_chat = isinstance(channel, VoiceChannel) and (here is None or channel.id != here.id)
    if is_other_chat and not allowed.send_messages:
        return Text("You are not allowed to write in this channel, so I do not write here for you.")
    return None


async def _in_room(
    rooms: Rooms, room_channel: RoomChannel, captions: Captions | None, listen: ListenRequest | None
) -> Text:
    """Begin or end captions in the person's channel, where the bot is already. Return what to tell them. Raises
    `StoreError`.
    """
    name, room = room_channel.name, rooms.open(room_channel.guild_id)
    only_listens, begins = room is not None and room.only_listens, listen is not None and listen.captions
    if not only_listens and (begins or captions == "off"):
        if room is not None:
            await room.caption(listen)
        return CAPTIONS_BEGIN.fill(channel=name) if begins else CAPTIONS_END
    if listen is None:
        return Text("I am already in {channel}.", channel=name)
    if only_listens and not begins:
        return Text("I am already in {channel}. I only write down what is said.", channel=name)
    return HERE_ALREADY.fill(channel=name)


async def _join(
    interaction: discord.Interaction,
    rooms: Rooms,
    find_channel: FindChannel,
    captions: Captions | None,
    listen: ListenRequest | None,
) -> None:
    guild, channel = interaction.guild, voice_channel_of(member_of(interaction))
    room_channel = None if guild is None or channel is None else find_channel(guild.id, channel.id)
    if guild is None or channel is None or room_channel is None:
        await answer(interaction, Text("Join a voice channel first, then use this command again."))
        return
    here = rooms.room_channel_of(guild.id)
    if here is not None:
        if here.channel_id == channel.id:
            await answer_when_known(interaction, _in_room(rooms, here, captions, listen))
        else:
            await answer(interaction, ELSEWHERE)
        return
    if (refused := room_channel.refusal() or rooms.full(guild.id)) is not None:
        await answer(interaction, refused)
        return
    coming = COMING.fill(channel=channel.name)
    if listen is not None and not listen.captions:
        coming = Text("I am coming to {channel}. There I only write down what is said.", channel=channel.name)
    if (lacks := lacking_in(channel)) is not None:
        coming = joined((coming, lacks), "\n")
    try:
        await _answer_while(rooms.join(room_channel, listen=listen), interaction, coming)
    except KNOWN_ERRORS as error:
        log.warning("join_failed", guild_id=guild.id, channel_id=channel.id, error=error)
        await answer(
            interaction,
            Text("I could not join {channel}. {error}", channel=channel.name, error=sentence_of(error)),
        )
