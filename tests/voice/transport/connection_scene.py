"""A connection in the voice channel of a local Discord, and what it delivers."""

from __future__ import annotations

import asyncio
import contextlib
import runpy
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import discord
import pytest

from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from rehearsal.pytest_plugin import DiscordForTests, LocalPerson
from tests.rehearsal.discord.stock import StockBot, until
from tests.rehearsal.people.sounds import clip_of
from tests.sources import ROOT
from voice.transport.audio_events import AudioEvent, SpeechFrames, TalkspurtEnded
from voice.transport.connection import CONNECT_TIMEOUT_S, GIVE_UP_AFTER_S, DiscordVoiceConnection
from voice.transport.connection_events import ConnectionEvent
from voice.transport.discord_gateway import DiscordMainGateway, VoiceChannel
from voice.transport.paced_sender import PacedSender
from voice.transport.private.client import ReceivingClient
from voice.transport.private.connection_state import ReceivingState

# What the fixture `scene` gives: `open_scene` with the fixture's Discord and folder, and the options of `open_scene`.
OpenScene: TypeAlias = "Callable[..., AbstractAsyncContextManager[ConnectionScene]]"

BOT, ADA, BEN = 1001, 2001, 2002
CHANNEL, SIDE_ROOM = 600, 602


@dataclass
class SceneListener:
    """Records what the connection delivers: sound, marks and events, in order."""

    heard: list[AudioEvent] = field(default_factory=list)
    events: list[ConnectionEvent] = field(default_factory=list)
    excluded: set[int] = field(default_factory=set)

    def sink(self, batch: Sequence[AudioEvent]) -> None:
        self.heard += batch

    def seconds_of(self, user_id: int) -> float:
        return sum(
            len(item.pcm) / 16_000 for item in self.heard if isinstance(item, SpeechFrames) and item.user_id == user_id
        )

    def ends_of(self, user_id: int) -> int:
        return sum(isinstance(item, TalkspurtEnded) and item.user_id == user_id for item in self.heard)

    def kinds(self) -> list[type]:
        return [type(event) for event in self.events]


@dataclass
class ConnectionScene:
    """A bot that is connected to the channel of `opened`."""

    opened: DiscordForTests
    client: StockBot
    listener: SceneListener
    connection: DiscordVoiceConnection
    clip: Clip

    @property
    def local(self) -> LocalDiscord:
        return self.opened.discord

    def person(self, name: str, *, channel_id: int | None = None) -> AbstractAsyncContextManager[LocalPerson]:
        """Let a member come into a voice channel, by default the bot's."""
        return self.opened.person(name, channel_id=channel_id)

    def ssrc(self) -> int:
        """Return the bot's SSRC, as the voice server knows it."""
        (mine,) = (member for member in self.local.status()["members"] if member["id"] == str(BOT))
        return int(mine["ssrc"])

    async def can_speak(self) -> None:
        """Wait until the encrypted group has the bot."""
        await until(lambda: self.connection.client is not None and self.connection.client.can_send, "the group")

    async def is_back_with(self, person: LocalPerson) -> None:
        """Check that a person is in the bot's encrypted group again, and is heard."""
        await person.voice.meet(BOT)
        await self.can_speak()
        await self.hears(person)

    async def hears(self, person: LocalPerson) -> None:
        """Let a person say the clip, and check that sound of its length and its end are heard.

        On a busy machine the person may stall, which makes two talkspurts of one. No sound is lost by that.
        """
        before, ends = self.listener.seconds_of(person.id), self.listener.ends_of(person.id)
        said = self.clip.duration_s + 0.1  # five silence frames
        await person.say(self.clip)
        await until(
            lambda: (
                self.listener.seconds_of(person.id) - before > said - 0.15 and self.listener.ends_of(person.id) > ends
            ),
            f"hearing {said:.2f} s",
        )
        assert self.listener.seconds_of(person.id) - before < said + 0.15


@contextlib.asynccontextmanager
async def open_scene(
    opened: DiscordForTests,
    folder: Path,
    *,
    give_up_after_s: float = GIVE_UP_AFTER_S,
    paced_sender: PacedSender | None = None,
    require_e2ee: bool = False,
    is_owner: Callable[[], Awaitable[bool]] | None = None,
) -> AsyncIterator[ConnectionScene]:
    """Run a bot that is connected to a channel of a local Discord. Afterwards no client or voice thread is left."""
    clip = clip_of(folder, lead_s=0.1, voice_s=0.6, tail_s=0.1)
    listener = SceneListener()
    client = StockBot()
    async with opened.bot(client, bot_id=BOT):
        async with DiscordVoiceConnection(
            DiscordMainGateway(client, voice_channel(client), is_owner=is_owner),
            sink=listener.sink,
            give_up_after_s=give_up_after_s,
            heard_since=lambda user_id: None if user_id in listener.excluded else float("-inf"),
            on_event=listener.events.append,
            paced_sender=paced_sender,
            require_e2ee=require_e2ee,
        ) as connection:
            yield ConnectionScene(opened, client, listener, connection, clip)
        assert client.voice_clients == []
        await until(no_voice_threads, "the end of the threads")


def connection_of(
    client: StockBot, *, gateway: DiscordMainGateway | None = None, connect_timeout_s: float = CONNECT_TIMEOUT_S
) -> DiscordVoiceConnection:
    """Return a connection of the bot's voice channel that nobody listens to."""
    return DiscordVoiceConnection(
        gateway or DiscordMainGateway(client, voice_channel(client)),
        sink=lambda _: None,
        heard_since=lambda _: float("-inf"),
        on_event=lambda _: None,
        connect_timeout_s=connect_timeout_s,
    )


def no_voice_threads() -> bool:
    """Return whether no voice thread is left. discord.py tells its heartbeat thread to end and does not wait for it."""
    return not [thread for thread in threading.enumerate() if "voice-" in thread.name]


def voice_channel(client: StockBot, channel_id: int = CHANNEL) -> VoiceChannel:
    channel = client.get_channel(channel_id)
    assert isinstance(channel, VoiceChannel)
    return channel


def example_bot(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the bot of the example that hears, not yet started."""
    monkeypatch.setattr("builtins.input", lambda _: "")
    monkeypatch.setattr(discord.Client, "run", lambda *_: None)
    return runpy.run_path(str(ROOT / "examples" / "who_spoke.py"))["bot"]


async def ask_nobody(*_: object, **__: object) -> None:
    """Stand in for the request to join a channel, without sending it."""


async def never_answers(self: ReceivingState, resume: bool) -> None:
    """Stand in for the connecting to a voice server that lets nothing through."""
    await asyncio.Event().wait()


async def end_runner(client: ReceivingClient) -> None:
    """Let discord.py's websocket task die while `is_connected()` stays true."""
    runner = client.connection._runner
    assert runner is not None
    while not runner.done():
        runner.cancel()
        await asyncio.wait([runner], timeout=0.1)
