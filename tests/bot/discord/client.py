"""The bot's client on a local Discord, with fake rooms behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

from pydantic import SecretStr

from bot.channel.port import MembershipChange, Person, RoomChannel, TypedMessage, UnfinishedWords
from bot.discord.client import RoomtoneClient
from bot.discord.connection import connected
from bot.discord.room_channel import DiscordRoomChannel
from bot.models.voices import EmbeddedVoice
from bot.room.auto_joiner import AutoJoiner
from bot.room.room import Room
from bot.room.rooms import Rooms
from bot.server_settings import ListenRequest
from bot.settings import DiscordSettings, RehearsedDiscordSettings
from bot.texts.text import Text
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, GuildSpec
from rehearsal.discord.server import LocalDiscord
from rehearsal.pytest_plugin import open_discord
from tests.patience import PATIENCE_S, settle

ADA, BEN = 2001, 2002
TOKEN = f"{ROOMTONE_BOT_ID}.local"


class FakeRooms(Rooms):
    """Stands for the rooms, and records the calls."""

    def __init__(self) -> None:
        self.room_channel: RoomChannel | None = None
        self.refuse: Exception | None = None
        self.listens: ListenRequest | None = None
        self.captions_thread: int | None = None
        self.captions: list[ListenRequest | None] = []
        self.state = Text("I am well.")
        # What only the operator is told.
        self.sums = Text("")
        self.is_full: Text | None = None
        self.words: tuple[UnfinishedWords, ...] = ()
        self.told = asyncio.Event()
        self.movements: list[tuple[int, int, MembershipChange]] = []
        self.drags: list[tuple[int, int]] = []
        self.taken_out: list[int] = []
        self.typed: list[TypedMessage] = []
        self.written = ""
        self.no_answer: Text | None = None
        # It stands for what brings the bot too.
        self.auto_joiner = cast("AutoJoiner", self)
        self.arrivals: list[tuple[int, str, int | None]] = []
        self.departures: list[int] = []
        self.played: list[str] = []
        self.refuses: Text | None = None

    async def join(self, channel: RoomChannel, *, listen: ListenRequest | None = None) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.room_channel, self.listens = channel, listen

    def open(self, guild_id: int) -> Room:
        """Stand for the room too."""
        return cast("Room", self)

    async def caption(self, wanted: ListenRequest | None) -> None:
        self.captions.append(wanted)

    async def leave(self, guild_id: int) -> bool:
        was_there, self.room_channel = self.room_channel is not None, None
        return was_there

    def room_channel_of(self, guild_id: int) -> RoomChannel | None:
        return self.room_channel

    @property
    def only_listens(self) -> bool:
        return self.listens is not None and not self.listens.captions

    def status(self, guild_id: int) -> Text:
        return self.state

    async def all_servers(self) -> Text:
        return self.sums

    def full(self, guild_id: int) -> Text | None:
        return self.is_full

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        return self.words

    async def take_typed(self, message: TypedMessage) -> Text | None:
        self.typed.append(message)
        if self.written:
            await message.answer(self.written)
        return self.no_answer

    def on_membership(self, guild_id: int, channel_id: int, change: MembershipChange) -> None:
        self.movements.append((guild_id, channel_id, change))
        self.told.set()

    def on_arrival(self, room_channel: RoomChannel, person: Person, *, came_from: int | None) -> None:
        self.arrivals.append((room_channel.channel_id, person.name, came_from))

    def on_departure(self, room_channel: RoomChannel) -> None:
        self.departures.append(room_channel.channel_id)

    async def play_sample(self, voice: EmbeddedVoice) -> Text | None:
        self.played.append(voice.sample)
        return self.refuses

    def on_bot_moved(self, room_channel: RoomChannel) -> None:
        self.drags.append((room_channel.guild_id, room_channel.channel_id))

    def on_bot_taken_out(self, guild_id: int) -> None:
        self.taken_out.append(guild_id)


def settings_for(local: LocalDiscord, *, token: str = "") -> DiscordSettings:
    """Return settings that lead to the local Discord. `token`: by default its first bot's."""
    return RehearsedDiscordSettings(
        token=SecretStr(token or f"{local.guild.bots[0].id}.local"),
        api_base=local.api_base,
        certificate=str(local.certificate_path),
    )


@asynccontextmanager
async def online(
    guild: GuildSpec | None = None,
    *,
    settings: Mapping[str, tuple[int, ...]] | None = None,
    decided: Mapping[int, bool] | None = None,
) -> AsyncIterator[tuple[LocalDiscord, RoomtoneClient, FakeRooms]]:
    """Start a local Discord with the bot's client connected to it. `settings`: guilds and owners. `decided`: see
    `GuildAdmission`.
    """
    rooms = FakeRooms()
    async with (
        open_discord(guild) as opened,
        connected(settings_for(opened.discord).model_copy(update=settings), rooms, decided=decided) as client,
    ):
        yield opened.discord, client, rooms


def room_channel_in(client: RoomtoneClient, channel_id: int) -> DiscordRoomChannel:
    """Return one of the voice channels."""
    room_channel = client.find_channel(client.guilds[0].id, channel_id)
    assert isinstance(room_channel, DiscordRoomChannel)
    return room_channel


async def answered(local: LocalDiscord, user_id: int, command: str, replies: int = 1, **options: object) -> list[str]:
    """Use a command, and return the answers, which only this person sees."""
    result = await local.invoke(user_id, command, options)
    await result.until(lambda current: len(current.replies) >= replies, timeout_s=PATIENCE_S)
    assert all(reply.ephemeral for reply in result.replies)
    return [reply.content for reply in result.replies]


async def enters(local: LocalDiscord, rooms: FakeRooms, user_id: int, channel_id: int = 600) -> None:
    """Let somebody join a voice channel, and wait until the bot knows."""
    before = len(rooms.movements)
    await local.join(user_id, channel_id=channel_id)
    await settle(lambda: len(rooms.movements) > before)
