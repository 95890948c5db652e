"""The whole link against the local Discord, with real websockets, encryption and packet loss. Every
talkspurt is heard.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from discord.voice_state import ConnectionFlowState

from rehearsal.discord import LocalDiscord
from rehearsal.runner.scripted_member import scripted_member
from tests.rehearsal.discord.stock import stock_bot, until
from tests.rehearsal.people.sounds import clip_of
from tests.voice.transport.link_scene import (
    ADA,
    BEN,
    BOT,
    CHANNEL,
    SIDE_ROOM,
    Scene,
    ask_nobody,
    scene,
    voice_channel,
)
from voice.audio import DISCORD_FRAME_SAMPLES, Pcm
from voice.errors import RemovedFromChannelError
from voice.transport import keepalive, reconnection
from voice.transport.audio_events import SpeakerLeft, SpeechFrames
from voice.transport.connector import ATTEMPT_S, NOT_ENCRYPTED
from voice.transport.discord_gateway import DiscordMainGateway
from voice.transport.keepalive import Keepalive
from voice.transport.link import VoiceLink
from voice.transport.link_events import Connected, Deaf, Lost, Recovering
from voice.transport.paced_sender import running_paced_sender
from voice.transport.private import connection_state, websocket
from voice.transport.private.connection_state import ReceivingState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from rehearsal.discord.arrivals import PacketArrival
    from voice.transport.private.client import ReceivingClient


@pytest.mark.asyncio
async def test_a_person_is_heard(tmp_path: Path) -> None:
    """A person who joins, speaks and leaves is heard with the right length and tone, and nothing fails."""
    async with scene(tmp_path) as room:
        async with scripted_member(room.local, ADA) as ada:
            await ada.meet(BOT)
            await room.hears(ada)
            await room.hears(ada)
            assert room.link.members == {ADA}
        await until(lambda: SpeakerLeft in map(type, room.listener.heard), "leaving")
        counts = room.link.counters()
        assert (counts.dave_failures, counts.transport_failures, counts.lost, counts.unknown_ssrc) == (0, 0, 0, 0)
        assert counts.talkspurts >= 2
        pcm = np.concatenate([item.pcm for item in room.listener.heard if isinstance(item, SpeechFrames)])
        assert np.abs(pcm).max() > 2000
    assert room.listener.kinds() == [Connected]


@pytest.mark.asyncio
async def test_bursts_of_padding_are_no_loss(tmp_path: Path) -> None:
    """Fifty padded packets at once at each silence, half of them nothing but padding, cost no frame and no wait."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.local.fault("padding_bursts", count=50)
        for _ in range(3):
            await room.hears(ada)
        counts = room.link.counters()
        assert counts.padding > 30
        assert (counts.lost, counts.late, counts.concealed, counts.malformed, counts.dave_failures) == (0, 0, 0, 0, 0)
    assert room.listener.kinds() == [Connected]


@pytest.mark.asyncio
async def test_frames_in_the_clear_are_not_heard_and_recover_nothing(tmp_path: Path) -> None:
    """Frames that come in the clear though the call is encrypted are not heard. The rest of the talkspurt is, and the
    group is left alone.
    """
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.local.fault("clear_frames", share=0.1)
        for _ in range(3):
            await room.hears(ada)
        assert room.link.counters().clear > 0
        await room.local.fault("clear_frames", share=1, tiny=0)
        before = room.link.counters()
        await ada.say(clip_of(tmp_path, voice_s=1.0))
        await until(lambda: room.link.counters().clear >= before.clear + 50, "the beeps")
        counts = room.link.counters()
        assert (counts.decoded, counts.dave_failures) == (before.decoded, 0)
        assert not room.link._receiver.check(connected=True, runner_alive=True, in_transition=False)
    assert room.listener.kinds() == [Connected]


@pytest.mark.asyncio
async def test_who_is_alone_and_comes_in_the_clear_sees_the_bot_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nothing but frames in the clear comes, nobody is heard, which is told, and the connection stays."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        monkeypatch.setattr(room.link._receiver._watchdog, "_deaf_after_s", 0.5)
        await room.local.fault("clear_frames", share=1, tiny=0)
        for times in (1, 2, 3):
            await ada.say(room.clip)
            await until(lambda: room.listener.kinds().count(Deaf) == times, "telling it")  # noqa: B023
        assert room.link.unheard
        assert room.listener.kinds() == [Connected, Deaf, Deaf, Deaf]


@pytest.mark.asyncio
async def test_padding_loss_and_reordering_lose_no_talkspurt(tmp_path: Path) -> None:
    """With 5 % padding, loss and reordering, every talkspurt has its full length. Missing frames are recovered or
    concealed.
    """
    async with (
        scene(tmp_path) as room,
        scripted_member(room.local, ADA) as ada,
        scripted_member(room.local, BEN) as ben,
    ):
        await ada.meet(BOT)
        await ben.meet(BOT)
        await ada.meet(BEN)
        room.local.network.update({"padding": 0.05, "loss": 0.05, "reorder": 0.05})
        for _ in range(3):
            await asyncio.gather(room.hears(ada), room.hears(ben))
        room.local.network.update({"padding": 0.0, "loss": 0.0, "reorder": 0.0})
        counts = room.link.counters()
        assert counts.dave_failures == counts.undecodable == 0
        assert counts.recovered + counts.concealed <= counts.lost


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", ["malformed_proposals", "invalid_commit"])
async def test_bad_mls_messages_are_survived(tmp_path: Path, fault: str) -> None:
    """After garbage as op 27 or op 29 the bot joins the MLS group again and hears on the same connection."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        epoch = room.local.status()["epoch"]
        await room.local.fault(fault, user_id=BOT)
        await until(lambda: room.local.status()["epoch"] > epoch + 1, "the rejoining")
        await ada.meet(BOT)
        await room.can_speak()
        await room.hears(ada)
        assert room.listener.kinds() == [Connected]


@pytest.mark.asyncio
@pytest.mark.parametrize(("close_code", "resumed"), [(0, True), (4015, True), (4006, False), (4009, False)])
async def test_killed_voice_websocket_is_recovered(tmp_path: Path, close_code: int, resumed: bool) -> None:
    """After the voice websocket breaks, with or without a close code, the link comes back and hears.

    If the session still exists it is resumed: the SSRC and the group stay the same, and nobody sees the bot leave and
    join.
    """
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        ssrc, epoch = room.ssrc(), room.local.status()["epoch"]
        await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=close_code)
        back = [Connected, Lost, Connected] if resumed else [Connected, Lost, Recovering, Connected]
        await until(lambda: room.listener.kinds() == back, "coming back")
        assert room.listener.events[-1].again  # type: ignore[union-attr]
        assert ((room.ssrc(), room.local.status()["epoch"]) == (ssrc, epoch)) is resumed
        await ada.meet(BOT)
        await room.can_speak()
        await room.hears(ada)


@pytest.mark.asyncio
@pytest.mark.parametrize("close_code", [4014, 4022])
async def test_a_disconnection_without_a_reason_is_told_at_once_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, close_code: int
) -> None:
    """If the voice server says that the bot is disconnected and the main gateway says nothing, the link is down at
    once, asks Discord whether the bot is still in the channel, and joins again.
    """
    monkeypatch.setattr(connection_state, "_WORD_S", 0.1)
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=close_code)
        await until(lambda: room.listener.kinds() == [Connected, Lost, Recovering, Connected], "coming back")
        await ada.meet(BOT)
        await room.can_speak()
        await room.hears(ada)


@pytest.mark.asyncio
async def test_being_taken_out_without_a_word_is_final(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bot that was removed does not come back, even if the main gateway does not say that it was."""
    monkeypatch.setattr(connection_state, "_WORD_S", 0.1)
    async with scene(tmp_path) as room:
        await room.local.fault("remove_silently", user_id=BOT)
        async with asyncio.timeout(10):
            assert "took the bot out" in str(await room.link.lost())
        assert room.link.removed
        assert room.listener.kinds() == [Connected, Lost, Lost]
        assert not room.local.status()["voice_states"]


@pytest.mark.asyncio
async def test_a_voice_websocket_that_goes_silent_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A voice server that answers nothing any more, not even heartbeats, is noticed by its silence."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        monkeypatch.setattr(websocket, "_SILENCE_S", 0.01)
        await until(lambda: Lost in room.listener.kinds(), "noticing")
        monkeypatch.undo()
        await until(lambda: room.listener.kinds()[-1] is Connected, "coming back")
        await room.hears(ada)


@pytest.mark.asyncio
async def test_a_nat_that_forgets_does_not_deafen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a NAT that forgets after two silent seconds, somebody who speaks after a long silence is heard from the
    first frame on, because keepalives leave meanwhile. Their round trip is measured.
    """
    monkeypatch.setattr(keepalive, "KEEPALIVE_EVERY_S", 0.5)
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.local.fault("forgetful_nat", user_id=BOT, idle_s=2)
        since = time.monotonic()
        await until(lambda: time.monotonic() - since > 3, "three silent seconds")
        assert room.local.status()["packets"]["out"] == 0
        await room.hears(ada)
        assert room.local.status()["packets"]["forgotten"] == 0
        assert room.link.round_trip_s is not None
        assert 0 < room.link.round_trip_s < 1


@pytest.mark.asyncio
async def test_a_way_that_is_dead_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing comes back from a voice server that answered before, the link makes a new connection."""
    async with scene(tmp_path) as room:
        await until(lambda: room.link.round_trip_s is not None, "an echo")
        first = room.link._connector.client
        monkeypatch.setattr(Keepalive, "dead", lambda self, now: room.link._connector.client is first)
        await until(lambda: room.listener.kinds() == [Connected, Recovering, Connected], "the new connection")


@pytest.mark.asyncio
async def test_migration_to_another_voice_server_is_followed_twice(tmp_path: Path) -> None:
    """The link follows a move to another voice server twice in a call. discord.py alone takes the second move for the
    end.
    """
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        for times in (1, 2):
            await room.hears(ada)
            await room.local.fault("migrate", user_id=BOT)
            await until(lambda: room.listener.kinds().count(Connected) == times + 1, "the migration")  # noqa: B023
            await ada.meet(BOT)
            await room.can_speak()
        await room.hears(ada)


@pytest.mark.asyncio
@pytest.mark.parametrize(("stays_in_voice", "ready_after_s"), [(1, 0.0), (0, 0.0), (0, 0.7)])
async def test_a_new_main_session_is_followed(tmp_path: Path, stays_in_voice: int, ready_after_s: float) -> None:
    """After a new main session, for which discord.py forgets its voice clients, the link joins again, hears, and gets
    later events. That the bot is in no channel meanwhile is not taken for somebody's wish.
    """
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        before = voice_channel(room.client)
        told = {"stays_in_voice": stays_in_voice, "ready_after_s": ready_after_s}
        await room.local.fault("invalidate_session", user_id=BOT, **told)
        await until(lambda: room.listener.kinds()[-2:] == [Recovering, Connected], "joining anew")
        assert voice_channel(room.client) is not before
        await ada.meet(BOT)
        await room.can_speak()
        await room.hears(ada)
        await room.local.fault("migrate", user_id=BOT)
        await until(lambda: room.listener.kinds()[-2:] == [Lost, Connected], "the migration")
        await room.local.leave(BOT)
        async with asyncio.timeout(10):
            await room.link.lost()
        assert room.link.removed


@pytest.mark.asyncio
async def test_the_privacy_code_is_that_of_the_others(tmp_path: Path) -> None:
    """In an encrypted call the link has the privacy code that everybody else has; after a downgrade it has none."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        assert room.link.end_to_end
        assert re.fullmatch(r"(\d{5} ){5}\d{5}", room.link.privacy_code)
        await room.local.fault("downgrade")
        await until(lambda: not room.link.end_to_end, "the downgrade")
        assert room.link.privacy_code == ""


@pytest.mark.asyncio
async def test_a_downgrade_is_refused_where_encryption_is_required(tmp_path: Path) -> None:
    """With `require_e2ee`, nothing is heard or sent after a downgrade, and the link ends with the reason."""
    async with scene(tmp_path, require_e2ee=True) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        client = room.link._connector.client
        assert client is not None
        await room.local.fault("downgrade")
        await until(lambda: not client.connection.end_to_end, "the downgrade")
        assert not client.can_send
        before = room.listener.seconds_of(ADA)
        with contextlib.suppress(Exception):
            await ada.say(room.clip)
        async with asyncio.timeout(10):
            assert str(await room.link.lost()) == NOT_ENCRYPTED
        assert room.listener.seconds_of(ADA) == before


@pytest.mark.asyncio
async def test_downgrade_and_upgrade_are_heard(tmp_path: Path) -> None:
    """People are heard after encryption goes down to version 0 and after it goes up again."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.hears(ada)
        await room.local.fault("downgrade")
        await until(lambda: ada.dave_version == 0, "the downgrade")
        await room.hears(ada)
        await room.local.fault("upgrade")
        await until(lambda: ada.dave_version == 1, "the upgrade")
        await ada.meet(BOT)
        await room.hears(ada)
        assert room.link.counters().undecodable == 0


@pytest.mark.asyncio
async def test_a_session_that_began_without_encryption_hears_after_an_upgrade(tmp_path: Path) -> None:
    """The bot joins an unencrypted call, which becomes encrypted then: it hears before and after, on one connection."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.local.fault("downgrade")
        await until(lambda: ada.dave_version == 0, "the downgrade")
        await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=4006)
        await until(lambda: room.listener.kinds()[-2:] == [Recovering, Connected], "coming back")
        assert not room.link.end_to_end
        await ada.meet(BOT)
        await room.hears(ada)
        await room.local.fault("upgrade")
        await until(lambda: ada.dave_version == 1, "the upgrade")
        await ada.meet(BOT)
        await room.can_speak()
        await room.hears(ada)
        assert room.link.privacy_code
        assert room.listener.kinds()[-1] is Connected


@pytest.mark.asyncio
async def test_speech_before_op_5_is_heard_from_its_start(tmp_path: Path) -> None:
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.local.fault("late_speaking", delay_s=0.3)
        await room.hears(ada)
        assert room.link.counters().unknown_ssrc == 0


@pytest.mark.asyncio
async def test_rtcp_and_video_are_counted_and_ignored(tmp_path: Path) -> None:
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        await room.local.fault("rtcp", count=7)
        await room.local.fault("video", count=9)
        await room.hears(ada)
        assert room.link.counters().rtcp == 7
        assert room.link.counters().video == 9
        assert room.link.counters().malformed == 0


@pytest.mark.asyncio
async def test_excluded_people_are_not_heard(tmp_path: Path) -> None:
    async with (
        scene(tmp_path) as room,
        scripted_member(room.local, ADA) as ada,
        scripted_member(room.local, BEN) as ben,
    ):
        room.listener.excluded.add(BEN)
        await ada.meet(BOT)
        await ben.meet(BOT)
        await ben.say(room.clip)
        await room.hears(ada)
        assert room.listener.seconds_of(BEN) == 0
        assert room.link.counters().excluded > 30


class Tone:
    """An audio source that plays a tone for a number of frames, then nothing."""

    def __init__(self, frames: int) -> None:
        self.left = frames
        self.asked = 0

    def next_frame(self) -> Pcm | None:
        self.asked += 1
        if not self.left:
            return None
        self.left -= 1
        t = np.arange(DISCORD_FRAME_SAMPLES) / 48_000
        return (9000 * np.sin(2 * np.pi * 440 * t)).astype(np.int16)


@pytest.mark.asyncio
async def test_the_bot_is_heard_and_stops(tmp_path: Path) -> None:
    """Half a second of tone reaches the other participant. Then the thread keeps asking the source and
    sends nothing.
    """
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        source = Tone(25)
        room.link.play(source)
        await ada.wait_for_sound(BOT, since=0.0, timeout_s=10.0)
        await ada.wait_for_quiet(BOT, quiet_s=0.4, timeout_s=10.0)
        sent = room.local.status()["packets"]["in"]
        assert 29 <= sent <= 31
        asked = source.asked
        await until(lambda: source.asked > asked + 5, "asking on")
        await room.link.stop()
        asked = source.asked
        await room.hears(ada)
        assert source.asked == asked


@pytest.mark.asyncio
async def test_the_bot_is_heard_through_the_paced_sender_on_each_connection(tmp_path: Path) -> None:
    """Speech that the paced sender sends is heard at an even pace, also over the socket of a new connection."""
    with running_paced_sender() as paced_sender:
        async with scene(tmp_path, paced_sender=paced_sender) as room, scripted_member(room.local, ADA) as ada:
            arrivals: list[PacketArrival] = []
            room.local.watch_arrivals(arrivals.append)
            for endpoint in (1, 2):
                await ada.meet(BOT)
                await room.can_speak()
                began = time.monotonic()
                room.link.play(Tone(25))
                await ada.wait_for_sound(BOT, since=began, timeout_s=10.0)
                await ada.wait_for_quiet(BOT, quiet_s=0.4, timeout_s=10.0)
                assert len(arrivals) == 30
                assert arrivals[-1].at - arrivals[0].at > 28 * 0.02
                await room.link.stop()
                arrivals.clear()
                if endpoint == 1:
                    await room.local.fault("migrate", user_id=BOT)
                    await until(lambda: room.listener.kinds().count(Connected) == 2, "the migration")
        assert paced_sender is not None
        assert paced_sender.alive


@pytest.mark.asyncio
async def test_the_bot_is_heard_on_when_the_paced_sender_ends_in_mid_sentence(tmp_path: Path) -> None:
    """If the paced sender's process dies in mid-sentence, only the 40 ms that it held and frames on their way are lost.
    A new process continues.
    """
    with running_paced_sender() as paced_sender:
        assert paced_sender is not None
        async with scene(tmp_path, paced_sender=paced_sender) as room, scripted_member(room.local, ADA) as ada:
            arrivals: list[PacketArrival] = []
            room.local.watch_arrivals(arrivals.append)
            await ada.meet(BOT)
            await room.can_speak()
            worker = paced_sender._worker
            assert worker is not None
            room.link.play(Tone(60))
            await until(lambda: len(arrivals) > 15, "the voice")
            worker.process.kill()
            await until(lambda: paced_sender.alive and paced_sender._worker is not worker, "the next one")
            await ada.wait_for_quiet(BOT, quiet_s=0.4, timeout_s=10.0)
            # The tone has sixty frames, and five silence frames follow.
            assert 65 - 4 <= len(arrivals) <= 65
            assert room.listener.kinds() == [Connected]


@pytest.mark.asyncio
async def test_being_taken_out_of_the_channel_is_final(tmp_path: Path) -> None:
    async with scene(tmp_path) as room:
        await room.local.leave(BOT)
        async with asyncio.timeout(10):
            assert "took the bot out" in str(await room.link.lost())
        assert room.link.removed
        assert isinstance(room.listener.events[-1], Lost)
        assert room.listener.events[-1].final


async def never_answers(self: ReceivingState, resume: bool) -> None:
    """Stand in for the connecting to a voice server that lets nothing through."""
    await asyncio.Event().wait()


async def taken_out(room: Scene) -> None:
    await room.local.leave(BOT)


async def moved(room: Scene) -> None:
    await room.local.join(BOT, channel_id=SIDE_ROOM)


@pytest.mark.asyncio
@pytest.mark.parametrize("sent_away", [taken_out, moved])
async def test_being_taken_out_while_reconnecting_is_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent_away: Callable[[Scene], Awaitable[None]]
) -> None:
    """Somebody takes the bot out, or moves it, while the voice server is away: the link ends at once and stays away."""
    async with scene(tmp_path) as room:
        first = room.link._connector.client
        assert first is not None
        monkeypatch.setattr(ReceivingState, "_connect_websocket", never_answers)
        await end_runner(first)
        await until(lambda: room.link._connector.client not in (None, first), "the attempt")
        await until(lambda: room.link._connector.client.connection.endpoint, "Discord's answer")  # type: ignore[union-attr]
        await sent_away(room)
        async with asyncio.timeout(ATTEMPT_S / 2):
            assert "took the bot out" in str(await room.link.lost())
        assert room.link.removed
        assert room.listener.kinds() == [Connected, Recovering, Lost]
        await until(lambda: not room.local.status()["voice_states"], "leaving")


@pytest.mark.asyncio
async def test_being_taken_out_while_joining_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReceivingState, "_connect_websocket", never_answers)
    async with LocalDiscord() as local, stock_bot(local, BOT) as client:

        async def take_out() -> None:
            await until(lambda: local.status()["voice_states"], "the bot in the channel")
            await local.leave(BOT)

        taking_out = asyncio.create_task(take_out(), name="take-out")
        async with asyncio.timeout(ATTEMPT_S / 2):
            with pytest.raises(RemovedFromChannelError, match="took the bot out"):
                async with VoiceLink.open(
                    DiscordMainGateway(client, voice_channel(client)),
                    sink=lambda _: None,
                    is_excluded=lambda _: False,
                    on_event=lambda _: None,
                ):
                    pytest.fail("connected to nobody")
        await taking_out
        assert not local.status()["voice_states"]
        assert client.voice_clients == []


async def end_runner(client: ReceivingClient) -> None:
    """Let discord.py's websocket task die while `is_connected()` stays true."""
    runner = client.connection._runner
    assert runner is not None
    while not runner.done():
        runner.cancel()
        await asyncio.wait([runner], timeout=0.1)


@pytest.mark.asyncio
async def test_being_dragged_into_another_channel_is_final(tmp_path: Path) -> None:
    """A bot that is moved to another channel leaves it and hears nobody there, and the link ends for good."""
    async with (
        scene(tmp_path) as room,
        scripted_member(room.local, ADA, channel_id=SIDE_ROOM) as ada,
        scripted_member(room.local, BEN, channel_id=SIDE_ROOM),
    ):
        await ada.meet(BEN)
        await room.local.join(BOT, channel_id=SIDE_ROOM)
        await ada.say(room.clip)
        async with asyncio.timeout(10):
            assert "took the bot out" in str(await room.link.lost())
        assert room.link.removed
        await until(lambda: room.local.status()["members"][-2]["voice_channel_id"] is None, "leaving")
        assert room.listener.seconds_of(ADA) == 0


@pytest.mark.asyncio
async def test_dead_runner_is_noticed_and_replaced(tmp_path: Path) -> None:
    """When discord.py's websocket task dies, a new client replaces the old one."""
    async with scene(tmp_path) as room, scripted_member(room.local, ADA) as ada:
        await ada.meet(BOT)
        first = room.link._connector.client
        assert first is not None
        await end_runner(first)
        await until(lambda: room.link._connector.client is not first and room.link.connected, "the replacement")
        assert Recovering in room.listener.kinds()
        await ada.meet(BOT)
        await room.can_speak()
        await room.hears(ada)


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


@pytest.mark.asyncio
async def test_joining_that_discord_breaks_off_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If discord.py cancels its connector while a link opens, the link tries again, and its opener is not cancelled."""
    name_another_server_in_mid_handshake(monkeypatch)
    async with scene(tmp_path) as room:
        assert room.link.connected


@pytest.mark.asyncio
async def test_reconnection_that_discord_breaks_off_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If discord.py cancels its connector during a reconnection, the link's task does not end and tries again."""
    monkeypatch.setattr(reconnection, "FIRST_PAUSE_S", 0.01)
    async with scene(tmp_path) as room:
        name_another_server_in_mid_handshake(monkeypatch)
        first = room.link._connector.client
        assert first is not None
        await end_runner(first)
        await until(lambda: room.link._connector.client is not first and room.link.connected, "the replacement")
        assert room.listener.kinds()[-1] is Connected


@pytest.mark.asyncio
async def test_connector_that_fails_in_the_place_of_the_runner_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another voice server is announced during a resumption, discord.py starts a connector that nobody waits for.
    The link notices when this connector fails.

    The connector asks for the channel that the bot is already in, so Discord has nothing to answer.
    """
    news: list[asyncio.Task[None]] = []

    async def overtaken(self: ReceivingState) -> None:
        self.state = ConnectionFlowState.websocket_connected
        self.timeout = 0.01
        monkeypatch.setattr(self, "_voice_connect", ask_nobody)
        news.append(name_another_server(self))
        await asyncio.Event().wait()

    monkeypatch.setattr(ReceivingState, "_resume", overtaken)
    async with scene(tmp_path) as room:
        first = room.link._connector.client
        await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=4015)
        await until(lambda: room.link._connector.client is not first and room.link.connected, "the replacement")
        assert room.listener.kinds() == [Connected, Lost, Recovering, Connected]


@pytest.mark.asyncio
async def test_link_whose_task_is_cancelled_from_inside_is_lost(tmp_path: Path) -> None:
    """A link whose watching task is cancelled reports that it is lost. Closing the link afterwards reports nothing."""
    async with scene(tmp_path) as room:
        (keeper,) = (task for task in asyncio.all_tasks() if task.get_name() == f"voice-link-{CHANNEL}")
        keeper.cancel()
        async with asyncio.timeout(10):
            assert "watch failed" in str(await room.link.lost())
        assert room.listener.events[-1] == Lost(room.listener.events[-1].at, await room.link.lost(), final=True)
    assert room.listener.kinds() == [Connected, Lost]


@pytest.mark.asyncio
async def test_lost_link_is_given_up_after_its_time(tmp_path: Path) -> None:
    """With no time allowed for repairs, the first break ends the link. It does not count as removed by somebody."""
    async with scene(tmp_path, give_up_after_s=0.0) as room:
        await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=4006)
        async with asyncio.timeout(10):
            assert "could not be made anew" in str(await room.link.lost())
        assert not room.link.removed
        assert room.listener.kinds()[-1] is Lost
        assert not room.link.connected
