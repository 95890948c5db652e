"""The connection ends for good: when somebody takes the bot out, when its time is over, and in a stale process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from rehearsal.pytest_plugin import DiscordForTests
from tests.fakes.loop_time import wait_out
from tests.patience import PATIENCE_S, patiently
from tests.rehearsal.discord.stock import stock_bot, until
from tests.voice.transport.connection_scene import (
    ADA,
    BEN,
    BOT,
    SIDE_ROOM,
    ConnectionScene,
    OpenScene,
    connection_of,
    end_runner,
    never_answers,
    no_voice_threads,
    voice_channel,
)
from voice.errors import RemovedFromChannelError, TakenOverError
from voice.transport.connection_events import Connected, Lost, Recovering
from voice.transport.connector import ATTEMPT_S
from voice.transport.discord_gateway import DiscordMainGateway
from voice.transport.private.connection_state import WORD_S, ReceivingState


async def test_being_taken_out_without_a_word_is_final(scene: OpenScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bot that was removed does not come back, even if the main gateway does not say that it was."""
    async with scene() as room:
        await room.local.fault("remove_silently", user_id=BOT)
        await wait_out(monkeypatch, WORD_S)
        assert "took me out" in str(await patiently(room.connection.lost()))
        assert room.connection.removed
        assert room.listener.kinds() == [Connected, Lost, Lost]
        assert not room.local.status()["voice_states"]


@pytest.mark.parametrize("fault", ["kick", "delete_channel"])
async def test_a_bot_whose_channel_or_server_is_gone_is_out_for_good(
    scene: OpenScene, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Of a server that has kicked it, Discord tells the bot no more than that it is gone."""
    async with scene() as room:
        await room.local.fault(fault, user_id=BOT)
        if fault == "kick":
            await wait_out(monkeypatch, WORD_S)
        assert not (await patiently(room.connection.lost())).retryable
        assert not room.local.status()["voice_states"]


async def taken_out(room: ConnectionScene) -> None:
    await room.local.leave(BOT)


async def moved(room: ConnectionScene) -> None:
    await room.local.join(BOT, channel_id=SIDE_ROOM)


@pytest.mark.parametrize("sent_away", [taken_out, moved])
async def test_being_taken_out_while_reconnecting_is_final(
    scene: OpenScene, monkeypatch: pytest.MonkeyPatch, sent_away: Callable[[ConnectionScene], Awaitable[None]]
) -> None:
    """Somebody takes the bot out, or moves it, while the voice server is away: the connection ends at once and stays
    away.
    """
    async with scene() as room:
        first = room.connection.client
        assert first is not None
        monkeypatch.setattr(ReceivingState, "_connect_websocket", never_answers)
        await end_runner(first)
        await until(lambda: room.connection.client not in (None, first), "the attempt")
        await until(lambda: room.connection.client.connection.endpoint, "Discord's answer")  # type: ignore[union-attr]
        await sent_away(room)
        async with asyncio.timeout(ATTEMPT_S / 2):
            assert "took me out" in str(await room.connection.lost())
        assert room.connection.removed
        assert room.listener.kinds() == [Connected, Recovering, Lost]
        await until(lambda: not room.local.status()["voice_states"], "leaving")


async def test_being_taken_out_while_joining_is_final(
    local_discord: DiscordForTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReceivingState, "_connect_websocket", never_answers)
    async with stock_bot(local_discord.discord, BOT) as client:

        async def take_out() -> None:
            await until(lambda: local_discord.discord.status()["voice_states"], "the bot in the channel")
            await local_discord.discord.leave(BOT)

        taking_out = asyncio.create_task(take_out(), name="take-out")
        async with asyncio.timeout(ATTEMPT_S / 2):
            with pytest.raises(RemovedFromChannelError, match="took me out"):
                async with connection_of(client):
                    pytest.fail("connected to nobody")
        await taking_out
        assert not local_discord.discord.status()["voice_states"]
        assert client.voice_clients == []


async def test_joining_that_is_broken_off_before_it_asked_has_nothing_to_leave(local_discord: DiscordForTests) -> None:
    """A bot that ends while it still looks whether the room is its own asks Discord for nothing, and waits for no
    answer.
    """
    asked, looking = list[int | None](), asyncio.Event()

    async def is_owner() -> bool:
        if not looking.is_set():
            looking.set()
            await asyncio.Event().wait()
        return True

    async with stock_bot(local_discord.discord, BOT) as client:
        gateway = DiscordMainGateway(
            client, voice_channel(client), is_owner=is_owner, on_request=lambda _, channel_id: asked.append(channel_id)
        )
        joining = asyncio.create_task(connection_of(client, gateway=gateway).__aenter__(), name="joining")
        await looking.wait()
        joining.cancel()
        await asyncio.wait({joining}, timeout=PATIENCE_S)
        assert joining.cancelled()
        assert asked == []
        assert client.voice_clients == []


async def test_being_dragged_into_another_channel_is_final(scene: OpenScene) -> None:
    """A bot that is moved to another channel leaves it and hears nobody there, and the connection ends for good."""
    async with (
        scene() as room,
        room.person("Ada", channel_id=SIDE_ROOM) as ada,
        room.person("Ben", channel_id=SIDE_ROOM),
    ):
        await ada.voice.meet(BEN)
        await room.local.join(BOT, channel_id=SIDE_ROOM)
        await ada.say(room.clip)
        assert "took me out" in str(await patiently(room.connection.lost()))
        assert room.connection.removed
        await until(lambda: room.local.status()["members"][-2]["voice_channel_id"] is None, "leaving")
        assert room.listener.seconds_of(ADA) == 0


async def test_lost_connection_is_given_up_after_its_time(scene: OpenScene) -> None:
    """With no time allowed for repairs, the first break ends the connection. That does not count as being removed."""
    async with scene(give_up_after_s=0.0) as room:
        await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=4006)
        assert "could not connect again" in str(await patiently(room.connection.lost()))
        assert not room.connection.removed
        assert room.listener.kinds()[-1] is Lost
        assert not room.connection.connected


async def test_a_stale_process_may_not_join(scene: OpenScene, local_discord: DiscordForTests) -> None:
    """It is told so in a sentence at once, tries no further, and leaves no thread behind."""

    async def is_owner() -> bool:
        return False

    with pytest.raises(TakenOverError) as refused:
        async with scene(is_owner=is_owner):
            pytest.fail("joined")
    assert not refused.value.retryable
    assert local_discord.discord.status()["voice_states"] == []
    await until(no_voice_threads, "the end of the threads")


async def test_a_stale_process_does_not_resume(scene: OpenScene) -> None:
    """A process that was frozen finds its voice websocket closed, and would get the session with its old credentials,
    which the next process may have taken over. It stays out, and says why.
    """
    owns = True

    async def is_owner() -> bool:
        return owns

    async with scene(is_owner=is_owner) as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        await room.hears(ada)
        owns = False
        await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=4015)
        assert isinstance(await patiently(room.connection.lost()), TakenOverError)
        assert Connected not in room.listener.kinds()[1:]
