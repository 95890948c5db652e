"""The voice connection of a stale process asks nothing of Discord."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from rehearsal.discord import LocalDiscord
from rehearsal.people.person import scripted_member
from tests.rehearsal.discord.stock import StockBot, stock_bot, until
from tests.rehearsal.people.sounds import clip_of
from tests.voice.transport.link_scene import ADA, BOT, Listener, Scene, no_voice_threads, voice_channel
from voice.errors import TakenOverError
from voice.transport.discord_gateway import DiscordMainGateway
from voice.transport.link import VoiceLink
from voice.transport.link_events import Connected, Lost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class Owner:
    """Says whether a process still has the room."""

    def __init__(self) -> None:
        self.owns = True

    async def asked(self) -> bool:
        return self.owns


@asynccontextmanager
async def linked(local: LocalDiscord, client: StockBot, owner: Owner, folder: Path) -> AsyncIterator[Scene]:
    """Yield a process of the bot in the channel."""
    listener = Listener()
    gateway = DiscordMainGateway(client, voice_channel(client), is_owner=owner.asked)
    async with VoiceLink(
        gateway, sink=listener.sink, is_excluded=lambda _: False, on_event=listener.events.append
    ) as link:
        yield Scene(local, client, listener, link, clip_of(folder, lead_s=0.1, voice_s=0.6, tail_s=0.1))


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


async def test_a_stale_process_may_not_join(tmp_path: Path) -> None:
    """It is told so in a sentence at once, tries no further, and leaves no thread behind."""
    stale = Owner()
    stale.owns = False
    async with LocalDiscord() as local, stock_bot(local, BOT) as client:
        with pytest.raises(TakenOverError) as refused:
            async with linked(local, client, stale, tmp_path):
                pytest.fail("joined")
        assert not refused.value.retryable
        assert local.status()["voice_states"] == []
        assert client.voice_clients == []
        await until(no_voice_threads, "the end of the threads")


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
            return isinstance(last, Lost) and last.final and isinstance(last.reason, TakenOverError)

        await until(is_final, "the end")
        assert Connected not in room.listener.kinds()[1:]
