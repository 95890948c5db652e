"""A room's voice connection in another process: only op 4 and Discord's two answers go through the gateway process."""

from __future__ import annotations

import asyncio
import ssl
import sys
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from unittest.mock import AsyncMock

import aiohttp
import numpy as np
import pytest

from bot.discord.place import DiscordPlace
from bot.remote.gateway_side.served_place import ServedPlaces
from bot.remote.link.gateway_link import GatewayLink
from bot.remote.link.hello import RoomIdentity
from bot.remote.link.listener import RemoteRoomListener
from bot.remote.messages.voice_messages import IsInChannel
from bot.remote.messages.wire_error import OtherProcessError
from bot.remote.room_side import remote_gateway
from bot.remote.room_side.remote_place import RemotePlace
from rehearsal.discord import LocalDiscord
from rehearsal.runner.scripted_member import scripted_member
from tests.bot.remote.peers import TOKEN
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.stock import StockBot, stock_bot, until
from tests.rehearsal.people.sounds import clip_of
from tests.test_architecture import ROOT
from tests.voice.transport.link_scene import ADA, BOT, Listener, no_voice_threads, voice_channel
from voice.audio import DISCORD_FRAME_SAMPLES
from voice.errors import LinkError
from voice.transport.discord_gateway import DiscordMainGateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from typing import Any

    from bot.channel.port import Link
    from bot.remote.link.message_link import MessageLink
    from rehearsal.people.clip import Clip
    from rehearsal.people.person import ScriptedPerson
    from voice.audio import Pcm


class Sentence:
    """Plays a tone of some frames once it is told to."""

    def __init__(self) -> None:
        self.frames = 0

    def next_frame(self) -> Pcm | None:
        """Return the next frame."""
        if not self.frames:
            return None
        self.frames -= 1
        at = np.arange(DISCORD_FRAME_SAMPLES) / 48_000
        return (8_000 * np.sin(2 * np.pi * 440 * at)).astype(np.int16)


class Gateway:
    """The process with the token: a stock client, and what serves its channel to rooms."""

    def __init__(self, local: LocalDiscord, client: StockBot, clip: Clip) -> None:
        self.local = local
        self.client = client
        self.clip = clip
        # What Discord was asked: the channel each time.
        self.asked: list[int | None] = []
        self.links: list[MessageLink] = []
        self.places = ServedPlaces(lambda _: CountedGateway(self), AsyncMock(return_value=None), clock=FakeClock())
        self.listener = RemoteRoomListener(self._on_link, TOKEN)

    def _on_link(self, _: RoomIdentity, link: MessageLink) -> None:
        block = ExitStack()
        block.enter_context(self.places.serve(DiscordPlace(self.client, voice_channel(self.client)), link))
        link.on_closed(block.close)
        self.links.append(link)


class CountedGateway(DiscordMainGateway):
    """A main gateway that counts what Discord is asked."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway.client, voice_channel(gateway.client))
        self._process = gateway

    async def request(self, channel_id: int | None, *, self_mute: bool = False, self_deaf: bool = False) -> bool:
        """Count, and ask."""
        self._process.asked.append(channel_id)
        return await super().request(channel_id, self_mute=self_mute, self_deaf=self_deaf)


@asynccontextmanager
async def gateway_process(folder: Path) -> AsyncIterator[Gateway]:
    """Run a local Discord and the process with the token."""
    clip = clip_of(folder, lead_s=0.1, voice_s=0.6, tail_s=0.1)
    async with LocalDiscord() as local, stock_bot(local, BOT) as client:
        gateway = Gateway(local, client, clip)
        async with gateway.listener:
            yield gateway


class RoomEnd:
    """A room's process: its link, its voice connection, and what it hears."""

    def __init__(self, gateway: Gateway, end: GatewayLink, place: RemotePlace, link: Link, listener: Listener) -> None:
        self._gateway = gateway
        self.end = end
        self.place = place
        self.link = link
        self.listener = listener
        self.sentence = Sentence()

    async def hears(self, person: ScriptedPerson) -> None:
        """Let a person say the clip, and wait until the room has heard all of it."""
        before = self.listener.seconds_of(person.user_id)
        await person.say(self._gateway.clip)
        wanted = self._gateway.clip.duration_s
        await until(lambda: self.listener.seconds_of(person.user_id) - before > wanted - 0.15, "hearing")


@asynccontextmanager
async def room_process(gateway: Gateway, *, claim: int = 1) -> AsyncIterator[RoomEnd]:
    """Run a room's end in the channel."""
    end = GatewayLink(gateway.listener.url, TOKEN, RoomIdentity(0, 0))
    tls = ssl.create_default_context(cafile=str(gateway.local.certificate_path))
    place = RemotePlace(end, connector=lambda: aiohttp.TCPConnector(ssl=tls))
    listener, sentence = Listener(), Sentence()
    channel = voice_channel(gateway.client)
    async with end:
        await place.begin(channel.guild.id, channel.id)
        connection = place.connect(sentence, listener.sink, excludes=listener.excluded.__contains__, claim=claim)
        async with connection as link:
            room = RoomEnd(gateway, end, place, link, listener)
            room.sentence = sentence
            yield room


def inside(local: LocalDiscord) -> list[Any]:
    """Return the bot's voice states."""
    return [state for state in local.status()["voice_states"] if state["user_id"] == str(BOT)]


def ssrc(local: LocalDiscord) -> int | None:
    """Return the bot's SSRC, which each of its voice sessions has anew; None: it has no session."""
    (bot,) = (member for member in local.status()["members"] if member["id"] == str(BOT))
    number: int | None = bot["ssrc"]
    return number


@pytest.mark.asyncio
async def test_a_room_hears_and_is_heard_over_the_wire(tmp_path: Path) -> None:
    """It joins, hears, speaks, is made anew with another voice server's word, and leaves."""
    async with gateway_process(tmp_path) as gateway, scripted_member(gateway.local, ADA) as ada:
        async with room_process(gateway) as room:
            await ada.meet(BOT)
            await room.hears(ada)
            room.sentence.frames = 50
            await ada.wait_for_sound(BOT, since=0.0, timeout_s=PATIENCE_S)
            assert room.link.end_to_end
            assert [person.id for person in room.place.members()] == [ADA]
            await gateway.local.fault("kill_voice_websocket", user_id=BOT, close_code=4006)
            await until(lambda: len(gateway.asked) >= 3 and room.link.state == "connected", "the new connection")
            await ada.meet(BOT)
            await room.hears(ada)
        await until(lambda: not inside(gateway.local), "leaving")
        assert gateway.client.voice_clients == []
        await until(no_voice_threads, "the end of the threads")
    assert gateway.asked[0] == gateway.asked[2] is not None
    assert gateway.asked[1] is gateway.asked[-1] is None


@pytest.mark.asyncio
async def test_a_room_hears_on_while_its_link_is_lost(tmp_path: Path) -> None:
    """The voice connection has no gap. What is asked fails with a sentence meanwhile. When the link is back, the room
    is told where Discord sends it, and asks nothing anew.
    """
    async with (
        gateway_process(tmp_path) as gateway,
        scripted_member(gateway.local, ADA) as ada,
        room_process(gateway) as room,
    ):
        await ada.meet(BOT)
        await room.hears(ada)
        changes = gateway.asked.copy()
        room.end._url, url = "ws://127.0.0.1:9/room", room.end._url
        gateway.links[-1].close()
        await until(lambda: not room.end.is_open, "the loss")
        with pytest.raises(OtherProcessError, match="not there at the moment"):
            await room.end.ask(IsInChannel(), within_s=PATIENCE_S)
        assert await room.place.show_listening(on=True) is False
        await room.hears(ada)
        assert room.link.state == "connected"
        assert room.link.down_since is None
        room.end._url = url
        await until(lambda: room.end.is_open and room.place._gateway.attached, "the new link")
        await room.hears(ada)
        assert gateway.asked == changes
        await gateway.local.fault("kill_voice_websocket", user_id=BOT, close_code=4006)
        await until(lambda: len(gateway.asked) == len(changes) + 2 and room.link.state == "connected", "anew")
        await ada.meet(BOT)
        await room.hears(ada)


@pytest.mark.asyncio
async def test_a_room_outlives_the_gateway_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process with the token is gone, and another one logs in: the room has heard without a gap. Once nobody
    speaks, its voice session is renewed, and from then on it is told by the new one where Discord sends it.
    """
    async with (
        gateway_process(tmp_path) as gateway,
        scripted_member(gateway.local, ADA) as ada,
        room_process(gateway) as room,
    ):
        await ada.meet(BOT)
        await room.hears(ada)
        quiet_s = remote_gateway.QUIET_S
        monkeypatch.setattr(remote_gateway, "QUIET_S", PATIENCE_S)
        async with stock_bot(gateway.local, BOT) as client:
            successor = Gateway(gateway.local, client, gateway.clip)
            async with successor.listener:
                room.end._url = successor.listener.url
                gateway.links[-1].close()
                await room.hears(ada)
                await until(lambda: room.end.is_open and room.place._gateway.attached, "the successor")
                assert (successor.asked, room.link.state, room.link.down_since) == ([], "connected", None)
                former = ssrc(gateway.local)
                monkeypatch.setattr(remote_gateway, "QUIET_S", quiet_s)
                await until(lambda: len(successor.asked) == 1 and successor.asked[0] is not None, "the renewal")
                await until(
                    lambda: ssrc(gateway.local) not in (None, former) and room.link.state == "connected",
                    "the renewed connection",
                )
                await ada.meet(BOT)
                await room.hears(ada)
                await gateway.local.fault("kill_voice_websocket", user_id=BOT, close_code=4006)
                await until(lambda: len(successor.asked) == 3 and room.link.state == "connected", "anew")
                await ada.meet(BOT)
                await room.hears(ada)
                room.end._url = gateway.listener.url


async def heard(output: asyncio.StreamReader, seconds: float) -> None:
    """Wait until a room's process has heard so much sound. A busy machine may hear it in few large pieces."""
    heard_s = 0.0
    while heard_s < seconds:
        line = await output.readline()
        assert line, "the process has ended"
        if line.startswith(b"heard "):
            heard_s = float(line.removeprefix(b"heard "))


@asynccontextmanager
async def killed_room(gateway: Gateway, ada: ScriptedPerson, *, speaking: Clip | None = None) -> AsyncIterator[None]:
    """Yield after the process of a room that has heard Ada was killed. `speaking`: what she is in the middle of."""
    channel = voice_channel(gateway.client)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.bot.remote.voice_child",
        gateway.listener.url,
        TOKEN,
        str(gateway.local.certificate_path),
        str(channel.guild.id),
        str(channel.id),
        "1",
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while b"joined" not in await child.stdout.readline():
                pass
            await ada.meet(BOT)
            saying = asyncio.create_task(ada.say(speaking or gateway.clip), name="ada")
            await heard(child.stdout, 0.6)
    finally:
        child.kill()
        await child.wait()
    await until(lambda: not gateway.links[-1].is_open, "the loss of the link")
    try:
        yield
    finally:
        await saying


@pytest.mark.asyncio
async def test_a_room_takes_over_from_one_that_was_killed(tmp_path: Path) -> None:
    """The next process gets the credentials at once: Discord is asked nothing, and the bot stays in the channel."""
    async with (
        gateway_process(tmp_path) as gateway,
        scripted_member(gateway.local, ADA) as ada,
        killed_room(gateway, ada),
    ):
        asked = gateway.asked.copy()
        (state,) = inside(gateway.local)
        async with room_process(gateway, claim=2) as room:
            await ada.meet(BOT)
            await room.hears(ada)
            assert gateway.asked == asked
            assert inside(gateway.local) == [state]
        await until(lambda: not inside(gateway.local), "leaving")


@pytest.mark.asyncio
async def test_a_room_is_handed_over_without_leaving(tmp_path: Path) -> None:
    """A process that has to end leaves the bot in the channel, and the next one needs no word of Discord."""
    async with gateway_process(tmp_path) as gateway, scripted_member(gateway.local, ADA) as ada:
        async with room_process(gateway, claim=1) as first:
            await ada.meet(BOT)
            await first.hears(ada)
            first.place.hand_over()
        (state,) = inside(gateway.local)
        async with room_process(gateway, claim=2) as second:
            await ada.meet(BOT)
            await second.hears(ada)
            assert gateway.asked == [second.place.channel_id]
            assert inside(gateway.local) == [state]
        await until(lambda: not inside(gateway.local), "leaving")


@pytest.mark.asyncio
async def test_the_rest_of_a_sentence_is_heard_by_the_next_process(tmp_path: Path) -> None:
    """Nobody tells the new process who speaks already, so it finds out whose key fits."""
    sentence = clip_of(tmp_path, lead_s=0.1, voice_s=12.0, tail_s=0.1)
    async with (
        gateway_process(tmp_path) as gateway,
        scripted_member(gateway.local, ADA) as ada,
        killed_room(gateway, ada, speaking=sentence),
        room_process(gateway, claim=2) as room,
    ):
        await until(lambda: room.listener.seconds_of(ADA) > 1.0, "the rest")
        assert gateway.asked == [room.place.channel_id]


@pytest.mark.asyncio
async def test_credentials_that_are_refused_are_replaced(tmp_path: Path) -> None:
    """If the voice server does not take them, the room comes in the usual way."""
    async with (
        gateway_process(tmp_path) as gateway,
        scripted_member(gateway.local, ADA) as ada,
        killed_room(gateway, ada),
    ):
        (served,) = gateway.places._gateways._of.values()
        served._last["server"].data["token"] = "no token of Discord"
        async with room_process(gateway, claim=2) as room:
            await ada.meet(BOT)
            await room.hears(ada)
            assert gateway.asked[-2:] == [None, room.place.channel_id]


@pytest.mark.asyncio
async def test_a_process_with_an_older_claim_is_refused(tmp_path: Path) -> None:
    """It may neither join, nor take the bot out of the channel: the newer one hears on."""
    async with (
        gateway_process(tmp_path) as gateway,
        scripted_member(gateway.local, ADA) as ada,
        room_process(gateway, claim=8) as room,
    ):
        await ada.meet(BOT)
        with pytest.raises(LinkError, match="Another process of this bot") as refused:
            async with room_process(gateway, claim=7):
                pytest.fail("joined")
        assert not refused.value.retryable
        assert None not in gateway.asked
        await room.hears(ada)


@pytest.mark.asyncio
async def test_bots_and_people_who_opted_out_are_not_heard(tmp_path: Path) -> None:
    """Their packets are dropped in the room's process, unread."""
    async with (
        gateway_process(tmp_path) as gateway,
        scripted_member(gateway.local, ADA) as ada,
        room_process(gateway) as room,
    ):
        await ada.meet(BOT)
        room.listener.excluded.add(ADA)
        excluded = room.link.counters["excluded"]
        await ada.say(gateway.clip)
        await until(lambda: room.link.counters["excluded"] > excluded + 20, "dropping")
        assert room.listener.seconds_of(ADA) == 0
        room.listener.excluded.clear()
        room.place._bots = frozenset({ADA})
        await ada.say(gateway.clip)
        await until(lambda: room.link.counters["excluded"] > excluded + 50, "dropping")
        assert room.listener.seconds_of(ADA) == 0
