"""Joining that is refused or fails says why in a plain sentence, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import discord
import pytest
from discord.voice_state import VoiceConnectionState

from rehearsal.discord import LocalDiscord
from rehearsal.pytest_plugin import DiscordForTests
from tests.fakes.loop_time import loop_turns
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.stock import StockBot, stock_bot, until
from tests.voice.transport.connection_scene import (
    BOT,
    SIDE_ROOM,
    OpenScene,
    ask_nobody,
    connection_of,
    no_voice_threads,
    voice_channel,
)
from voice.errors import VoiceConnectionError
from voice.transport.connector import joining_failure
from voice.transport.discord_gateway import DiscordMainGateway, check_entry
from voice.transport.private.client import ReceivingClient

EVENING: Any = SimpleNamespace(channel=SimpleNamespace(name="Evening"))


async def test_second_connection_in_the_same_guild_is_refused(scene: OpenScene) -> None:
    async with scene() as room:
        gateway = DiscordMainGateway(room.client, voice_channel(room.client, SIDE_ROOM))
        with pytest.raises(VoiceConnectionError, match="already"):
            async with connection_of(room.client, gateway=gateway):
                pytest.fail("two connections in one guild")
        assert room.connection.connected


async def test_silence_of_discord_is_a_plain_sentence_and_leaves_nothing_behind(
    local_discord: DiscordForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If Discord never answers the request to join, a `VoiceConnectionError` after the timeout says where to look."""
    monkeypatch.setattr(VoiceConnectionState, "_voice_connect", ask_nobody)
    async with stock_bot(local_discord.discord, BOT) as client:
        with pytest.raises(VoiceConnectionError, match="firewall"):
            async with connection_of(client, connect_timeout_s=1.0):
                pytest.fail("connected to nobody")
        assert client.voice_clients == []
        await until(no_voice_threads, "the end of the threads")


async def test_cancelled_while_connecting_leaves_nothing_behind(local_discord: DiscordForTests) -> None:
    """If the task that opens a connection is cancelled during the handshake, the bot leaves the channel again."""
    async with stock_bot(local_discord.discord, BOT) as client:
        task = asyncio.create_task(stay_until_cancelled(client), name="opening")
        await until(lambda: client.voice_clients, "the voice client")
        await cancelled_and_gone(task, local_discord.discord, client)


async def test_a_cancellation_that_is_swallowed_counts(
    local_discord: DiscordForTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the library joins although the task was cancelled, the bot leaves the channel again, and the task ends."""
    join, joined = ReceivingClient.join, asyncio.Event()

    async def joins_anyhow(self: ReceivingClient, *, timeout_s: float) -> None:
        await join(self, timeout_s=timeout_s)
        joined.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    monkeypatch.setattr(ReceivingClient, "join", joins_anyhow)
    async with stock_bot(local_discord.discord, BOT) as client:
        task = asyncio.create_task(stay_until_cancelled(client), name="opening")
        await joined.wait()
        await cancelled_and_gone(task, local_discord.discord, client)


@pytest.mark.parametrize("turns", [0, 2, 5])
async def test_cancelled_while_leaving_leaves_all_the_same(local_discord: DiscordForTests, turns: int) -> None:
    """Whenever the task that closes a connection is cancelled, the bot leaves the channel. `turns`: of the loop."""
    opened, leaves = asyncio.Event(), asyncio.Event()

    async def stay(client: StockBot) -> None:
        async with connection_of(client):
            opened.set()
            await leaves.wait()

    async with stock_bot(local_discord.discord, BOT) as client:
        task = asyncio.create_task(stay(client), name="stay")
        await opened.wait()
        leaves.set()
        await loop_turns(turns + 1)
        await cancelled_and_gone(task, local_discord.discord, client)


async def stay_until_cancelled(client: StockBot) -> None:
    async with connection_of(client):
        await asyncio.Event().wait()


async def cancelled_and_gone(task: asyncio.Task[None], local: LocalDiscord, client: StockBot) -> None:
    """Cancel the task of a connection, and check that it ends and that the bot has left the channel."""
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE_S)
    assert task.cancelled()
    assert client.voice_clients == []
    await until(lambda: not local.status()["voice_states"], "leaving")


def _closed(code: int) -> discord.ConnectionClosed:
    return discord.ConnectionClosed(SimpleNamespace(close_code=code), shard_id=None, code=code)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (TimeoutError(), None, "I waited 30 seconds"),
        (TimeoutError(), 4006, r"closed the connection \(code 4006\)"),
        (_closed(4014), 4014, "code 4014"),
        (ConnectionRefusedError(), None, r"could not reach the voice server of Evening \(ConnectionRefusedError\)"),
        (IndexError(), None, r"cannot read \(IndexError\)\. Use /join again"),
        (VoiceConnectionError("said already"), None, "said already"),
        (asyncio.CancelledError(), None, "I could not finish joining Evening"),
    ],
)
def test_every_failure_is_a_plain_sentence(error: BaseException, code: int | None, sentence: str) -> None:
    refusal = joining_failure(error, EVENING, timeout_s=30.0, close_code=code, cancelled=False)
    assert refusal is not None
    assert re.search(sentence, str(refusal))


def test_cancellation_is_nobody_s_failure() -> None:
    error, gateway = asyncio.CancelledError(), EVENING
    assert joining_failure(error, gateway, timeout_s=30.0, close_code=None, cancelled=True) is None


def _channel(**changed: Any) -> Any:
    """Return a stand-in for a channel, with the fields that the permission checks read."""
    rights = SimpleNamespace(view_channel=True, connect=True, move_members=False)
    made = SimpleNamespace(
        id=600,
        name="Evening",
        user_limit=0,
        members=[SimpleNamespace(id=1), SimpleNamespace(id=2)],
        permissions_for=lambda _: rights,
        guild=SimpleNamespace(id=5, name="Guild", me=SimpleNamespace(id=BOT), get_channel=lambda _: True),
    )
    for name, value in changed.items():
        setattr(rights if hasattr(rights, name) else made, name, value)
    return made


@pytest.mark.parametrize(
    ("changed", "sentence", "retryable"),
    [
        ({"connect": False}, ": Connect", False),
        ({"view_channel": False, "connect": False}, "View Channel, Connect", False),
        ({"user_limit": 2}, "full.*2", True),
    ],
)
def test_forbidden_channels_are_refused_before_discord_keeps_silent(
    changed: dict[str, object], sentence: str, retryable: bool
) -> None:
    with pytest.raises(VoiceConnectionError, match=sentence) as refused:
        check_entry(_channel(**changed))
    assert refused.value.retryable is retryable


@pytest.mark.parametrize(
    ("guild", "sentence", "retryable"),
    [
        (SimpleNamespace(unavailable=True), "Guild", True),
        (SimpleNamespace(unavailable=False, get_channel=lambda _: None), "no longer exists", False),
        (None, "no longer exists", False),
    ],
)
async def test_a_channel_that_discord_does_not_show_is_not_entered_anew(
    guild: object, sentence: str, retryable: bool
) -> None:
    """If Discord does not show the guild at the moment, the connection may try again. If the guild or the channel is
    gone, it may not.
    """
    client: Any = SimpleNamespace(get_guild=lambda _: guild)
    with pytest.raises(VoiceConnectionError, match=sentence) as refused:
        DiscordMainGateway(client, _channel()).check_entry()
    assert refused.value.retryable is retryable


def test_a_bot_is_known_while_discord_describes_its_server_anew() -> None:
    """After a session that could not be resumed discord.py knows the server at once, and its members only later."""
    members = {7: SimpleNamespace(bot=True), 8: SimpleNamespace(bot=False)}
    channel: Any = SimpleNamespace(guild=SimpleNamespace(id=500, get_member=members.get))
    for known in (channel.guild, SimpleNamespace(get_member=lambda _: None), None):
        client: Any = SimpleNamespace(get_guild=lambda _, known=known: known)
        gateway = DiscordMainGateway(client, channel)
        assert [gateway.is_bot(user_id) for user_id in (7, 8, 9)] == [True, False, False]
