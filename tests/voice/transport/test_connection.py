"""The whole connection against the local Discord, with real websockets, encryption and packet loss."""

from __future__ import annotations

import contextlib
import re
import time
from functools import partial

import numpy as np
import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from rehearsal.discord.dave.group import DaveOpcode
from rehearsal.discord.guild.spec import SPARE_BOT_ID, Channel, GuildSpec
from rehearsal.discord.voice.voice_room import VoiceRoom, VoiceSession
from rehearsal.people.received_speech import ReceivedSpeech
from tests.patience import patiently
from tests.rehearsal.discord.stock import Tone as StockTone
from tests.rehearsal.discord.stock import stock_bot, until
from tests.voice.transport.connection_scene import ADA, BEN, BOT, CHANNEL, OpenScene, voice_channel
from voice.audio import DISCORD_FRAME_SAMPLES, Pcm
from voice.hearing import HearingClient
from voice.transport.audio_events import SpeakerLeft, SpeechFrames
from voice.transport.connection_events import Connected, Recovering
from voice.transport.connector import NOT_ENCRYPTED
from voice.transport.counters import PacketCounters
from voice.transport.paced_sender import running_paced_sender

STAGE = GuildSpec(voice_channels=(Channel(CHANNEL, "Podium", stage=True),))


@pytest.mark.parametrize("local_guild", [GuildSpec(), STAGE], ids=["encrypted", "on a stage"])
async def test_a_person_is_heard(scene: OpenScene, local_guild: GuildSpec) -> None:
    """A person who joins, speaks and leaves is heard with the right length and tone, and nothing fails. The log has how
    the bot came in, the change of keys, and what became of the packets. On a stage there are no keys.
    """
    with capture_logs() as lines:
        counts, kinds = await _heard(scene)
    assert kinds == [Connected]
    logged = {line["event"]: line for line in lines}
    assert logged["voice_joined"]["mode"] == "aead_xchacha20_poly1305_rtpsize"
    version = logged.get("dave_transition_executed", {}).get("protocol_version")
    assert version == (None if local_guild is STAGE else 1)
    assert logged["voice_packets_counted"]["decoded"] == counts.decoded


async def _heard(scene: OpenScene) -> tuple[PacketCounters, list[type]]:
    async with scene() as room:
        async with room.person("Ada") as ada:
            await ada.voice.meet(BOT)
            await room.hears(ada)
            await room.hears(ada)
            assert room.connection.members == {ADA}
        await until(lambda: SpeakerLeft in map(type, room.listener.heard), "leaving")
        counts = room.connection.counters()
        assert (counts.dave_failures, counts.transport_failures, counts.lost, counts.unknown_ssrc) == (0, 0, 0, 0)
        assert counts.talkspurts >= 2
        pcm = np.concatenate([item.pcm for item in room.listener.heard if isinstance(item, SpeechFrames)])
        assert np.abs(pcm).max() > 2000
    return counts, room.listener.kinds()


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


def _asks_on(source: Tone, asked: int) -> bool:
    return source.asked > asked + 5


def _has(heard: ReceivedSpeech, packets: int) -> bool:
    return len(heard) == packets


@pytest.mark.parametrize("paced", [True, False])
async def test_the_bot_is_heard_and_stops_on_each_connection(scene: OpenScene, paced: bool) -> None:
    """Half a second of tone is heard at an even pace, also over the socket of a new connection. Then the thread keeps
    asking the source, until it is stopped.
    """
    with running_paced_sender() if paced else contextlib.nullcontext() as paced_sender:
        async with scene(paced_sender=paced_sender) as room, room.person("Ada") as ada:
            heard = ada.voice.heard(BOT)
            for packets in (30, 60):
                await ada.voice.meet(BOT)
                await room.can_speak()
                played_at, source = time.monotonic(), Tone(25)
                room.connection.play(source)
                await until(partial(_has, heard, packets), "the tone and its silence frames")
                # A busy machine may send any of them late, and none before its time.
                assert heard.last_sound_at is not None
                assert heard.last_sound_at - played_at > 20 * 0.02
                await until(partial(_asks_on, source, source.asked), "asking on")
                await room.connection.stop()
                asked = source.asked
                if packets == 30:
                    await room.local.fault("migrate", user_id=BOT)
                    await until(lambda: room.listener.kinds().count(Connected) == 2, "the migration")
                assert source.asked == asked
        assert paced_sender is None or paced_sender.alive


async def test_excluded_people_and_bots_are_not_heard(scene: OpenScene) -> None:
    async with (
        scene() as room,
        room.person("Ada") as ada,
        room.person("Ben") as ben,
    ):
        room.listener.excluded.add(BEN)
        await ada.voice.meet(BOT)
        await ben.voice.meet(BOT)
        await ben.say(room.clip)
        await room.hears(ada)
        assert room.listener.seconds_of(BEN) == 0
        before = room.connection.counters().excluded
        assert before > 30
        async with stock_bot(room.local, SPARE_BOT_ID) as spare:
            speaking = await voice_channel(spare).connect(cls=HearingClient)
            speaking.play(StockTone(1.0))
            await until(lambda: room.connection.counters().excluded > before, "the bot's packets")
        assert room.listener.seconds_of(SPARE_BOT_ID) == 0


async def test_a_bad_mls_message_is_survived(scene: OpenScene) -> None:
    """After garbage as op 29 the bot joins the MLS group again and hears on the same connection."""
    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        await room.hears(ada)
        epoch = room.local.status()["epoch"]
        await room.local.fault("invalid_commit", user_id=BOT)
        await until(lambda: room.local.status()["epoch"] > epoch + 1, "the rejoining")
        await room.is_back_with(ada)
        assert room.listener.kinds() == [Connected]


async def test_who_comes_while_somebody_goes_is_heard(
    scene: OpenScene, monkeypatch: pytest.MonkeyPatch, logs: list[EventDict]
) -> None:
    """Discord proposes both in one epoch, in batches of their own: davey 0.1.7 then makes a commit that would shut the
    newcomer out.
    """
    take = VoiceRoom.dave_binary
    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        await room.local.fault("several_batches")

        def take_and_let_go(self: VoiceRoom, session: VoiceSession, opcode: int, body: bytes) -> None:
            take(self, session, opcode, body)
            if (session.user_id, opcode) == (BEN, DaveOpcode.KEY_PACKAGE):
                room.local.voice_gateway.disconnect(ADA)

        monkeypatch.setattr(VoiceRoom, "dave_binary", take_and_let_go)
        async with room.person("Ben") as ben:
            await room.is_back_with(ben)
        assert room.listener.kinds() == [Connected]
    assert "commit_without_welcome_not_sent" in {line["event"] for line in logs}


async def test_a_downgrade_is_refused_where_encryption_is_required(scene: OpenScene) -> None:
    """With `require_e2ee`, nothing is heard or sent after a downgrade, and the connection ends with the reason."""
    async with scene(require_e2ee=True) as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        await room.hears(ada)
        client = room.connection.client
        assert client is not None
        await room.local.fault("downgrade")
        await until(lambda: not client.connection.end_to_end, "the downgrade")
        assert not client.can_send
        before = room.listener.seconds_of(ADA)
        with contextlib.suppress(Exception):
            await ada.say(room.clip)
        assert str(await patiently(room.connection.lost())) == NOT_ENCRYPTED
        assert room.listener.seconds_of(ADA) == before


async def test_a_session_that_began_without_encryption_hears_after_an_upgrade(scene: OpenScene) -> None:
    """The bot joins an unencrypted call, which becomes encrypted then: it hears before and after, on one connection."""
    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        await room.local.fault("downgrade")
        await until(lambda: ada.voice.dave_version == 0, "the downgrade")
        await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=4006)
        await until(lambda: room.listener.kinds()[-2:] == [Recovering, Connected], "coming back")
        assert not room.connection.end_to_end
        await ada.voice.meet(BOT)
        await room.hears(ada)
        await room.local.fault("upgrade")
        await until(lambda: ada.voice.dave_version == 1, "the upgrade")
        await room.is_back_with(ada)
        assert room.connection.privacy_code
        assert room.listener.kinds()[-1] is Connected


async def test_downgrade_and_upgrade_are_heard(scene: OpenScene) -> None:
    """People are heard after encryption goes down to version 0 and after it goes up again. In an encrypted call the
    connection has the privacy code that everybody else has; after the downgrade it has none.
    """
    async with scene() as room, room.person("Ada") as ada:
        await ada.voice.meet(BOT)
        await room.hears(ada)
        assert room.connection.end_to_end
        assert re.fullmatch(r"(\d{5} ){5}\d{5}", room.connection.privacy_code)
        await room.local.fault("downgrade")
        await until(lambda: ada.voice.dave_version == 0 and not room.connection.end_to_end, "the downgrade")
        assert room.connection.privacy_code == ""
        await room.hears(ada)
        await room.local.fault("upgrade")
        await until(lambda: ada.voice.dave_version == 1, "the upgrade")
        await ada.voice.meet(BOT)
        await room.hears(ada)
        assert room.connection.counters().undecodable == 0
