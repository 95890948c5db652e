"""The connection comes back: after broken websockets, dead ways, moves to another server and new main sessions."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from rehearsal.pytest_plugin import DiscordForTests
from tests.fakes.loop_time import wait_out
from tests.patience import patiently
from tests.rehearsal.discord.stock import until
from tests.voice.transport.connection_scene import BOT, OpenScene, end_runner, voice_channel
from voice.transport import keepalive
from voice.transport.connection_events import Connected, Lost, Recovering
from voice.transport.private import websocket
from voice.transport.private.connection_state import WORD_S, ReceivingState
from voice.transport.reconnection import LONGEST_PAUSE_S


@pytest.mark.parametrize(("close_code", "resumed"), [(0, True), (4006, False)])
async def test_killed_voice_websocket_is_recovered(scene: OpenScene, close_code: int, resumed: bool) -> None:
    """After the voice websocket breaks, with or without a close code, the connection comes back and hears.

    If the session still exists it is resumed: the SSRC and the group stay the same, and nobody sees the bot leave and
    join.
    """
    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        await room.hears(ada)
        ssrc, epoch = room.ssrc(), room.local.status()["epoch"]
        await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=close_code)
        back = [Connected, Lost, Connected] if resumed else [Connected, Lost, Recovering, Connected]
        await until(lambda: room.listener.kinds() == back, "coming back")
        assert room.listener.events[-1].again  # type: ignore[union-attr]
        assert ((room.ssrc(), room.local.status()["epoch"]) == (ssrc, epoch)) is resumed
        await room.is_back_with(ada)


@pytest.mark.parametrize(("close_code", "waits_s"), [(4014, WORD_S), (4022, WORD_S), (4021, LONGEST_PAUSE_S)])
async def test_a_disconnection_without_a_reason_is_told_at_once_and_mended(
    scene: OpenScene, monkeypatch: pytest.MonkeyPatch, close_code: int, waits_s: float
) -> None:
    """If the voice server says that the bot is disconnected and the main gateway says nothing, the connection is down
    at once, asks Discord whether the bot is still in the channel, and joins again. After a limit (4021) it asks for no
    reason, and waits longer.
    """
    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=close_code)
        await until(lambda: Lost in room.listener.kinds(), "the loss")
        await wait_out(monkeypatch, waits_s)
        await until(lambda: room.listener.kinds() == [Connected, Lost, Recovering, Connected], "coming back")
        await room.is_back_with(ada)


async def test_a_voice_websocket_that_goes_silent_is_replaced(
    scene: OpenScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A voice server that answers nothing any more, not even heartbeats, is noticed by its silence."""
    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        monkeypatch.setattr(websocket, "SILENCE_S", 0.01)
        await until(lambda: Lost in room.listener.kinds(), "noticing")
        monkeypatch.undo()
        await until(lambda: room.listener.kinds()[-1] is Connected, "coming back")
        # A resumption may have been too slow, too: then it is another connection.
        await room.is_back_with(ada)


async def test_a_nat_that_forgets_does_not_deafen(scene: OpenScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a NAT that forgets after two silent seconds, somebody who speaks after a long silence is heard from the
    first frame on, because keepalives leave meanwhile. Their round trip is measured.
    """
    monkeypatch.setattr(keepalive, "KEEPALIVE_EVERY_S", 0.1)
    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        await room.local.fault("forgetful_nat", user_id=BOT, idle_s=2)
        since = time.monotonic()
        await until(lambda: time.monotonic() - since > 3, "three silent seconds")
        assert room.local.status()["packets"]["out"] == 0
        await room.hears(ada)
        assert room.local.status()["packets"]["forgotten"] == 0
        assert room.connection.round_trip_s is not None
        assert room.connection.round_trip_s > 0


async def test_migration_to_another_voice_server_is_followed_twice(
    scene: OpenScene, local_discord: DiscordForTests
) -> None:
    """The connection follows a move to another voice server twice in a call. discord.py alone takes the second move for
    the end. Each time, also when the bot joins, Discord first names no server: it still looks for one.
    """
    await local_discord.discord.fault("no_voice_server", for_s=0.05)
    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        for times in (1, 2):
            await room.hears(ada)
            await room.local.fault("migrate", user_id=BOT)
            await until(lambda: room.listener.kinds().count(Connected) == times + 1, "the migration")  # noqa: B023
            await room.is_back_with(ada)


@pytest.mark.parametrize(
    ("fault", "options"),
    [
        ("invalidate_session", {"stays_in_voice": 1}),
        ("invalidate_session", {"stays_in_voice": 0, "ready_after_s": 0.7}),
        ("kill_gateway", {"close_code": 4009}),
    ],
)
async def test_a_new_main_session_is_followed(scene: OpenScene, fault: str, options: dict[str, float]) -> None:
    """After a new main session, for which discord.py forgets its voice clients, the connection joins again, hears, and
    gets later events. That the bot is in no channel meanwhile is not taken for somebody's wish.
    """
    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        await room.hears(ada)
        before = voice_channel(room.client)
        await room.local.fault(fault, user_id=BOT, **options)
        await until(lambda: room.listener.kinds()[-2:] == [Recovering, Connected], "joining anew")
        assert voice_channel(room.client) is not before
        await room.is_back_with(ada)
        await room.local.fault("migrate", user_id=BOT)
        await until(lambda: room.listener.kinds()[-2:] == [Lost, Connected], "the migration")
        await room.local.leave(BOT)
        await patiently(room.connection.lost())
        assert room.connection.removed


async def test_dead_runner_is_noticed_and_replaced(scene: OpenScene) -> None:
    """When discord.py's websocket task dies, a new client replaces the old one."""
    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        first = room.connection.client
        assert first is not None
        await end_runner(first)
        await until(lambda: room.connection.client is not first and room.connection.connected, "the replacement")
        assert Recovering in room.listener.kinds()
        await room.is_back_with(ada)


def name_another_server(state: ReceivingState) -> asyncio.Task[None]:
    """Announce another voice server to a connection that is being made, as the main gateway does."""
    server: Any = {"token": "another", "guild_id": str(state.server_id), "endpoint": state.endpoint}
    return asyncio.create_task(state.voice_server_update(server), name="server-update")


def name_another_server_in_mid_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the announcement of another voice server interrupt the next client's handshake. That server never answers.

    discord.py then cancels its own connector, and the code that waits for the connector gets the cancellation.
    """
    handshake = ReceivingState._handshake_websocket
    news: dict[ReceivingState, asyncio.Task[None]] = {}

    async def overtaken(self: ReceivingState) -> None:
        if not news:
            news[self] = name_another_server(self)
        if self in news:
            await asyncio.Event().wait()
        await handshake(self)

    monkeypatch.setattr(ReceivingState, "_handshake_websocket", overtaken)


async def test_joining_that_discord_breaks_off_is_tried_again(
    scene: OpenScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If discord.py cancels its connector while a connection opens, the connection tries again, and its opener is not
    cancelled.
    """
    name_another_server_in_mid_handshake(monkeypatch)
    async with scene() as room:
        assert room.connection.connected


@pytest.mark.parametrize(
    ("attempt", "fault", "options"),
    [("_connect_websocket", "kill_voice_websocket", {"close_code": 4015}), ("_handshake_websocket", "migrate", {})],
)
async def test_another_voice_server_that_is_named_during_an_attempt_is_followed(
    scene: OpenScene, monkeypatch: pytest.MonkeyPatch, attempt: str, fault: str, options: dict[str, float]
) -> None:
    """The voice server crashes and answers no resumption, or the next one answers no handshake. As soon as the main
    gateway names another server the connection goes on there, without leaving the channel.
    """
    original, tried = getattr(ReceivingState, attempt), asyncio.Event()

    async def never_answers_once(self: ReceivingState, *args: Any, **options: Any) -> Any:
        if tried.is_set():
            return await original(self, *args, **options)
        tried.set()
        await asyncio.Event().wait()
        return None

    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        monkeypatch.setattr(ReceivingState, attempt, never_answers_once)
        await room.local.fault(fault, user_id=BOT, **options)
        await patiently(tried.wait())
        room.local.switch_endpoint()
        room.local.gateway.announce_voice_server(BOT)
        await until(lambda: room.listener.kinds() == [Connected, Lost, Connected], "the other server")
        await room.is_back_with(ada)
