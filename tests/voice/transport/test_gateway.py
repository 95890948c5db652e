"""A voice connection needs nothing of Discord's main gateway but `MainGateway`; a stale one asks nothing of it."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from rehearsal.discord import LocalDiscord
from rehearsal.runner.scripted_member import scripted_member
from tests.rehearsal.discord.stock import StockBot, stock_bot, until
from tests.rehearsal.people.sounds import clip_of
from tests.voice.transport.link_scene import ADA, BOT, CHANNEL, Listener, Scene, no_voice_threads, voice_channel
from voice.errors import LinkError
from voice.transport.discord_gateway import DiscordMainGateway
from voice.transport.gateway import TAKEN_OVER
from voice.transport.link import VoiceLink
from voice.transport.link_events import Connected, Lost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from voice.transport.gateway import VoiceUpdates


class Owner:
    """Says whether a process still has the room."""

    def __init__(self) -> None:
        self.owns = True

    async def asked(self) -> bool:
        return self.owns


class DistantGateway:
    """A main gateway as another process has it: what goes between the two is text, in the order in which it was sent.

    Implements `voice.transport.gateway.MainGateway`. Nothing of discord.py's client reaches the voice connection.
    """

    user_id, guild_id, channel_id = BOT, 0, CHANNEL
    channel_name, guild_name = "Evening", "Guild"
    bitrate_bps = 64_000
    is_open = True
    forgotten = False

    def __init__(self, near: DiscordMainGateway, session: aiohttp.ClientSession) -> None:
        self._near = near
        self.guild_id = near.guild_id
        self._session = session
        self._wire: asyncio.Queue[str] = asyncio.Queue()
        self._passing: asyncio.Task[None] | None = None

    @property
    def attached(self) -> bool:
        return self._passing is not None

    def check_entry(self) -> None:
        """Let the bot in."""

    async def attach(self, updates: VoiceUpdates) -> None:
        await self._near.attach(self)
        self._passing = asyncio.create_task(self._pass_on(updates), name="distant-gateway")

    async def on_voice_state_update(self, data: Any, /) -> None:
        self._wire.put_nowait(json.dumps({"state": data}))

    async def on_voice_server_update(self, data: Any, /) -> None:
        self._wire.put_nowait(json.dumps({"server": data}))

    async def _pass_on(self, updates: VoiceUpdates) -> None:
        while True:
            sent = json.loads(await self._wire.get())
            if "state" in sent:
                await updates.on_voice_state_update(sent["state"])
            else:
                await updates.on_voice_server_update(sent["server"])

    def detach(self) -> None:
        self._near.detach()
        if self._passing is not None:
            self._passing.cancel()
        self._passing = None

    async def request(self, channel_id: int | None, *, self_mute: bool = False, self_deaf: bool = False) -> bool:
        return await self._near.request(channel_id, self_mute=self_mute, self_deaf=self_deaf)

    async def is_in_channel(self) -> bool:
        return await self._near.is_in_channel()

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        return await self._session.ws_connect(url, compress=compress, max_msg_size=0, autoclose=False)


@asynccontextmanager
async def linked(local: LocalDiscord, client: StockBot, owner: Owner, folder: Path) -> AsyncIterator[Scene]:
    """Yield a process of the bot in the channel."""
    listener = Listener()
    gateway = DiscordMainGateway(client, voice_channel(client), is_owner=owner.asked)
    async with VoiceLink(
        gateway, sink=listener.sink, is_excluded=lambda _: False, on_event=listener.events.append
    ) as link:
        yield Scene(local, client, listener, link, clip_of(folder, lead_s=0.1, voice_s=0.6, tail_s=0.1))


@pytest.mark.asyncio
async def test_a_connection_needs_no_main_client(tmp_path: Path) -> None:
    """With nothing but text between it and the process with the token, a connection joins, hears, is made anew with
    another voice server's word, and leaves.
    """
    listener = Listener()
    async with LocalDiscord() as local, stock_bot(local, BOT) as client, scripted_member(local, ADA) as ada:
        tls = ssl.create_default_context(cafile=str(local.certificate_path))
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
            gateway = DistantGateway(DiscordMainGateway(client, voice_channel(client)), session)
            async with VoiceLink(
                gateway, sink=listener.sink, is_excluded=lambda _: False, on_event=listener.events.append
            ) as link:
                room = Scene(local, client, listener, link, clip_of(tmp_path, lead_s=0.1, voice_s=0.6, tail_s=0.1))
                await ada.meet(BOT)
                await room.hears(ada)
                await local.fault("kill_voice_websocket", user_id=BOT, close_code=4006)
                await until(lambda: len(listener.events) > 2 and link.connected, "the new connection")
                await ada.meet(BOT)
                await room.hears(ada)
            await until(lambda: not [s for s in local.status()["voice_states"] if s["user_id"] == str(BOT)], "leaving")
        await until(no_voice_threads, "the end of the threads")


@pytest.mark.asyncio
async def test_a_stale_process_leaves_the_channel_to_its_owner(tmp_path: Path) -> None:
    """A second process with the same token takes the voice connection over. When the first one ends, it does not ask
    Discord to let the bot out, and the second one goes on hearing.
    """
    first, second = Owner(), Owner()
    async with (
        LocalDiscord() as local,
        stock_bot(local, BOT) as one,
        stock_bot(local, BOT) as other,
        AsyncExitStack() as stale,
    ):
        await stale.enter_async_context(linked(local, one, first, tmp_path))
        first.owns = False
        async with linked(local, other, second, tmp_path) as room, scripted_member(local, ADA) as ada:
            await ada.meet(BOT)
            await room.hears(ada)
            await stale.aclose()
            assert one.voice_clients == []
            await room.hears(ada)
            assert room.link.connected
            assert room.listener.kinds() == [Connected]


@pytest.mark.asyncio
async def test_a_stale_process_may_not_join(tmp_path: Path) -> None:
    """It is told so in a sentence at once, tries no further, and leaves no thread behind."""
    stale = Owner()
    stale.owns = False
    async with LocalDiscord() as local, stock_bot(local, BOT) as client:
        with pytest.raises(LinkError, match=TAKEN_OVER) as refused:
            async with linked(local, client, stale, tmp_path):
                pytest.fail("joined")
        assert not refused.value.retryable
        assert local.status()["voice_states"] == []
        assert client.voice_clients == []
        await until(no_voice_threads, "the end of the threads")


@pytest.mark.asyncio
async def test_a_stale_process_does_not_resume(tmp_path: Path) -> None:
    """A process that was frozen finds its voice websocket closed, and would get the session with its old credentials,
    which the next process may have taken over. It stays out, and says why.
    """
    owner = Owner()
    async with (
        LocalDiscord() as local,
        stock_bot(local, BOT) as client,
        scripted_member(local, ADA) as ada,
        linked(local, client, owner, tmp_path) as room,
    ):
        await ada.meet(BOT)
        await room.hears(ada)
        owner.owns = False
        await local.fault("kill_voice_websocket", user_id=BOT, close_code=4015)

        def is_final() -> bool:
            last = room.listener.events[-1]
            return isinstance(last, Lost) and last.final and str(last.reason) == TAKEN_OVER

        await until(is_final, "the end")
        assert Connected not in room.listener.kinds()[1:]
