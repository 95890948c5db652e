"""`voice.HearingClient` hears in a bot of discord.py that has nothing else of ours."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
import wave
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, cast

import discord
import numpy as np
import pytest

import voice
from rehearsal.discord.dave.delivery import DeliveryService
from rehearsal.discord.guild.spec import Channel, GuildSpec
from rehearsal.discord.websockets import HeartbeatWatch
from rehearsal.pytest_plugin import DiscordForTests
from tests.fakes.vad import LoudnessVad
from tests.patience import patiently
from tests.rehearsal.discord.stock import StockBot, Tone, stock_bot, until
from tests.rehearsal.people.sounds import clip_of
from tests.scenarios.program import REPOSITORY
from tests.voice.transport.connection_scene import (
    ADA,
    BEN,
    BOT,
    CHANNEL,
    SIDE_ROOM,
    example_bot,
    no_voice_threads,
    voice_channel,
)
from voice.errors import TakenOverError
from voice.hearing import Consent, EventQueue, HearingClient, HearingEvent
from voice.transport.private import require_versions
from voice.transport.receiver import Receiver


class Heard:
    """The events of a voice client, as they come."""

    def __init__(self, client: HearingClient) -> None:
        self.events: list[HearingEvent] = []
        self.reading = asyncio.create_task(self._read(client), name="events")

    async def _read(self, client: HearingClient) -> None:
        async for event in client.events():
            self.events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def seconds_of(self, user_id: int, rate_hz: int = 16_000) -> float:
        return sum(len(event.pcm) / rate_hz for event in self.of(voice.SpeechFrames) if event.user_id == user_id)

    async def until(self, condition: Callable[[], object]) -> None:
        await until(condition, "the events")

    async def ends(self) -> None:
        await patiently(self.reading)


async def connect(client: StockBot, **options: Any) -> tuple[HearingClient, Heard]:
    hearing = await voice_channel(client).connect(cls=partial(HearingClient, **options))
    return hearing, Heard(hearing)


@pytest.mark.usefixtures("in_tmp_path")
async def test_the_example_records_who_wants_it(
    local_discord: DiscordForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ada and Ben speak, and Ada has asked for it: her sound is in a file, its length is told, and Ben has none."""
    bot = example_bot(monkeypatch)
    clip = clip_of(tmp_path, voice_s=0.6)
    async with local_discord.bot(bot), local_discord.person("Ada") as ada, local_discord.person("Ben") as ben:
        await ada.use("record")
        await until(lambda: bot.voice_clients and bot.voice_clients[0].is_connected(), "the voice client")
        await ada.voice.meet(BOT)
        await ben.voice.meet(BOT)
        await ben.say(clip)
        await ada.say(clip)
        hearing = bot.voice_clients[0]
        await until(lambda: hearing.counters().talkspurts, "the end of what Ada says")
        await ada.use("stop")
        await until(lambda: len(local_discord.discord.messages) == 3, "what the bot says")
        told = local_discord.discord.messages[-1].content
        assert hearing.counters().excluded >= 30, "Ben was not decrypted"
    with wave.open(f"{ADA}.wav") as file:
        assert (file.getframerate(), file.getnchannels()) == (48_000, 1)
        assert f"<@{ADA}> spoke {file.getnframes() / 48_000:.1f} s" == told
        assert 0.6 < file.getnframes() / 48_000 < 1.5
    assert not (tmp_path / f"{BEN}.wav").exists()


async def test_it_hears_cuts_utterances_and_speaks(local_discord: DiscordForTests, tmp_path: Path) -> None:
    """Sound comes with who and when, and an utterance after it. A source of discord.py and frames are heard; the end of
    a source is told. Afterwards the bot is out of the channel, and no thread is left.
    """
    told: list[Exception | None] = []
    async with stock_bot(local_discord.discord, BOT) as client, local_discord.person("Ada") as ada:
        hearing, heard = await connect(client, vad=LoudnessVad())
        assert voice_channel(client).guild.voice_client is hearing
        await ada.voice.meet(BOT)
        await ada.say(clip_of(tmp_path, voice_s=0.6))
        await heard.until(lambda: heard.of(voice.Utterance))
        (utterance,) = heard.of(voice.Utterance)
        assert utterance.user_id == ADA
        assert heard.seconds_of(ADA) == pytest.approx(0.9, abs=0.2)
        assert heard.of(voice.SpeechStarted)
        hearing.play(Tone(0.5), after=told.append)
        with pytest.raises(discord.ClientException, match="lready"):
            hearing.play(Tone(0.5))
        assert len(await ada.hear(BOT)) > 0.4 * 16_000
        await until(lambda: told == [None], "the end of the tone")
        playback = voice.Playback()
        hearing.play(playback, after=told.append)
        await playback.queue(voice.Speech("A tone.", np.full(24_000, 9000, np.int16), 48_000))
        assert len(await ada.hear(BOT)) > 0.4 * 16_000
        assert hearing.is_playing()
        await hearing.disconnect()
        await heard.ends()
        await until(lambda: told == [None, None], "the end of the frames")
        assert (hearing.is_playing(), hearing.is_connected(), client.voice_clients) == (False, False, [])
        await until(lambda: not local_discord.discord.status()["voice_states"][1:], "leaving")
        await until(no_voice_threads, "the end of the threads")


@pytest.mark.parametrize(
    ("wall_s", "monotonic_s"),
    [(86_400.0, 0.0), (-86_400.0, 0.0), (0.0, 3_600.0)],
    ids=["set ahead", "set back", "stood still"],
)
async def test_a_clock_that_jumps_deafens_nobody(
    local_discord: DiscordForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall_s: float, monotonic_s: float
) -> None:
    """Somebody sets the machine's clock while Ada speaks, or the machine stands still for an hour. No sound is invented
    for the time between, and what she says afterwards is heard whole, as an utterance.
    """
    wall, wall_ns, monotonic = time.time, time.time_ns, time.monotonic
    jumped = False

    def now() -> float:
        return monotonic() + jumped * monotonic_s

    monkeypatch.setattr(time, "time", lambda: wall() + jumped * wall_s)
    monkeypatch.setattr(time, "time_ns", lambda: wall_ns() + jumped * int(wall_s * 10**9))
    monkeypatch.setattr(time, "monotonic", now)
    # The clock of the servers goes on, though it is this process's.
    monkeypatch.setattr(HeartbeatWatch, "opened", lambda *_: None)
    # It took the clock at its definition.
    monkeypatch.setitem(cast("Any", Receiver.__init__).__kwdefaults__, "clock", now)
    clip = clip_of(tmp_path, voice_s=0.6)
    async with stock_bot(local_discord.discord, BOT) as client, local_discord.person("Ada") as ada:
        hearing, heard = await connect(client, vad=LoudnessVad())
        await ada.voice.meet(BOT)
        saying = asyncio.create_task(ada.voice.say(clip), name="ada")
        await heard.until(lambda: heard.seconds_of(ADA) > 0.2)
        jumped = True
        await saying
        await heard.until(lambda: hearing.counters().talkspurts)
        assert heard.seconds_of(ADA) < 1.2
        # After an hour without a word from the voice server it connects anew.
        await heard.until(lambda: len(heard.of(voice.Connected)) == (2 if monotonic_s else 1))
        await ada.voice.meet(BOT)
        before, at = heard.seconds_of(ADA), now()
        await ada.voice.say(clip)
        await heard.until(lambda: [each for each in heard.of(voice.Utterance) if each.ended_at > at])
        # Where it connects anew at once, the rest of the first clip waits for the new keys, and is heard too.
        assert heard.seconds_of(ADA) - before > 0.7
        assert heard.seconds_of(ADA) < 2 * 0.9 + 0.3
        assert [each for each in heard.of(voice.Lost) if each.final] == heard.of(voice.EventsDropped) == []
        await hearing.disconnect()
        await heard.ends()


async def test_it_stays_the_server_s_voice_client(local_discord: DiscordForTests, tmp_path: Path) -> None:
    """After a lost voice connection and after a new main session, discord.py has it still, and it hears."""
    clip = clip_of(tmp_path, voice_s=0.6)
    async with stock_bot(local_discord.discord, BOT) as client, local_discord.person("Ada") as ada:
        hearing, heard = await connect(client)
        for fault, options in (
            ("kill_voice_websocket", {"close_code": 4006}),
            ("invalidate_session", {"stays_in_voice": 0}),
        ):
            before = len(heard.of(voice.Connected))
            await local_discord.discord.fault(fault, user_id=BOT, **options)
            await heard.until(lambda: len(heard.of(voice.Connected)) > before and hearing.is_connected())  # noqa: B023
            assert voice_channel(client).guild.voice_client is hearing
            await ada.voice.meet(BOT)
            sound = heard.seconds_of(ADA)
            await ada.say(clip)
            await heard.until(lambda: heard.seconds_of(ADA) - sound > 0.6)  # noqa: B023
        await hearing.disconnect()
        await heard.ends()


async def test_who_is_moved_is_over(local_discord: DiscordForTests) -> None:
    """Somebody moves the bot: it hears nobody there, the last event says why, and it can be connected anew."""
    async with stock_bot(local_discord.discord, BOT) as client:
        hearing, heard = await connect(client)
        await local_discord.discord.join(BOT, channel_id=SIDE_ROOM)
        await heard.ends()
        last = heard.events[-1]
        assert isinstance(last, voice.Lost)
        assert isinstance(last.reason, voice.RemovedFromChannelError)
        assert client.voice_clients == []
        with pytest.raises(discord.ClientException):
            hearing.play(Tone(0.1))
        again, heard = await connect(client)
        await again.disconnect()
        await again.disconnect()
        await heard.ends()


async def test_another_process_elsewhere_looks_like_a_move(local_discord: DiscordForTests) -> None:
    """A second process of the bot comes into another channel. The first one takes the bot out of there: as far as it
    knows, somebody has moved it, and nobody there was asked. So both are over.
    """
    async with stock_bot(local_discord.discord, BOT) as one, stock_bot(local_discord.discord, BOT) as other:
        _, told = await connect(one)
        # It may be out before it is in.
        with contextlib.suppress(voice.RemovedFromChannelError):
            await voice_channel(other, SIDE_ROOM).connect(cls=HearingClient)
        await told.ends()
        assert isinstance(cast("voice.Lost", told.events[-1]).reason, voice.RemovedFromChannelError)
        await until(lambda: one.voice_clients == other.voice_clients == [], "the end of both")


async def test_another_process_takes_the_place_over(local_discord: DiscordForTests, tmp_path: Path) -> None:
    """A second process with the same token comes into the channel. The first one is over and says why, does not let the
    bot out, and the second one hears.
    """
    async with (
        stock_bot(local_discord.discord, BOT) as one,
        stock_bot(local_discord.discord, BOT) as other,
        local_discord.person("Ada") as ada,
    ):
        _, told = await connect(one)
        second, heard = await connect(other)
        await told.ends()
        last = told.events[-1]
        assert isinstance(last, voice.Lost)
        assert isinstance(last.reason, TakenOverError)
        assert one.voice_clients == []
        await ada.voice.meet(BOT)
        await ada.say(clip_of(tmp_path, voice_s=0.6))
        await heard.until(lambda: heard.seconds_of(ADA) > 0.6)
        assert [type(event) for event in heard.events].count(voice.Connected) == 1
        await second.disconnect()
        await until(no_voice_threads, "the end of the threads")


async def test_refusals_are_said_and_leave_nothing_behind(
    local_discord: DiscordForTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stock_bot(local_discord.discord, BOT) as client:
        channel = voice_channel(client)
        with monkeypatch.context() as patch:
            patch.setattr(discord.VoiceChannel, "permissions_for", lambda *_: discord.Permissions(view_channel=True))
            with pytest.raises(voice.VoiceConnectionError, match="Connect"):
                await channel.connect(cls=HearingClient)
        assert client.voice_clients == []
        for wrong in ({"rate_hz": 44_100}, {"rate_hz": 48_000, "vad": LoudnessVad()}):
            with pytest.raises(ValueError, match="48000"):
                await channel.connect(cls=partial(HearingClient, **wrong))
        with pytest.raises(TypeError):
            HearingClient(client, cast("Any", object()))
        hearing = await channel.connect(cls=HearingClient)
        with pytest.raises(discord.ClientException, match="lready"):
            await voice_channel(client, SIDE_ROOM).connect(cls=HearingClient)
        await hearing.disconnect()
        await until(no_voice_threads, "the end of the threads")


def has_keys(status: dict[str, Any]) -> bool:
    """Return whether the bot is in the encrypted group, and everybody uses its keys."""
    return str(BOT) in status["leaves"] and not status["channels"][0]["pending_transitions"]


async def test_keys_that_never_come_are_told(
    local_discord: DiscordForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bot never gets into the encrypted group. An event names who is not heard, no sound waits anywhere, and once
    the keys come, it hears.
    """
    take = DeliveryService.key_package
    keeps_out = True

    monkeypatch.setattr(
        DeliveryService,
        "key_package",
        lambda self, user, body: [] if user == BOT and keeps_out else take(self, user, body),
    )
    clip = clip_of(tmp_path, voice_s=0.6)
    async with (
        stock_bot(local_discord.discord, BOT) as client,
        local_discord.person("Ada") as ada,
        local_discord.person("Ben") as ben,
    ):
        await ada.voice.meet(BEN)
        hearing, heard = await connect(client)
        await ada.say(clip)
        await heard.until(lambda: {each.user_id for each in heard.of(voice.Deaf)} == {ADA})
        await heard.until(lambda: heard.of(voice.Recovering))
        counted = hearing.counters()
        assert (heard.of(voice.SpeechFrames), counted.decoded, hearing.is_connected()) == ([], 0, True)
        assert counted.not_ready >= 30
        keeps_out = False
        await local_discord.discord.fault("request_reset")
        await until(lambda: has_keys(local_discord.discord.status()), "the keys")
        await ben.say(clip)
        await heard.until(lambda: heard.seconds_of(BEN) > 0.6)
        await hearing.disconnect()
        await heard.ends()


async def test_a_slow_reader_loses_the_oldest_events_and_is_told(
    local_discord: DiscordForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody reads while Ada speaks. The last three events are there, and how many came before them."""
    came: list[HearingEvent] = []

    class Small(EventQueue):
        def __init__(self, **options: Any) -> None:
            super().__init__(size=3, **options)

        def put(self, events: Iterable[HearingEvent]) -> None:
            events = list(events)
            came.extend(events)
            super().put(events)

    monkeypatch.setattr("voice.hearing.EventQueue", Small)
    async with stock_bot(local_discord.discord, BOT) as client, local_discord.person("Ada") as ada:
        hearing = await voice_channel(client).connect(cls=HearingClient)
        await ada.voice.meet(BOT)
        await ada.say(clip_of(tmp_path, voice_s=0.6))
        await until(lambda: hearing.counters().talkspurts, "the end of what Ada says")
        await hearing.disconnect()
        read = [event async for event in hearing.events()]
    assert (read[0], len(read)) == (voice.EventsDropped(len(came) - 3), 4)
    assert all(one is other for one, other in zip(read[1:], came[-3:], strict=True))


async def test_whoever_reads_last_has_the_events() -> None:
    """A loop that was left is over, and a new one goes on where it was."""
    queue = EventQueue()
    queue.put([voice.SpeakerLeft(each, 0.0) for each in (1, 2)])
    left = cast("Any", queue.read())
    assert await anext(left) == voice.SpeakerLeft(1, 0.0)
    assert await anext(queue.read()) == voice.SpeakerLeft(2, 0.0)
    queue.put([voice.SpeakerLeft(3, 0.0)])
    assert [event async for event in left] == []
    queue.close()
    assert [event async for event in queue.read()] == [voice.SpeakerLeft(3, 0.0)]


async def test_sound_counts_from_the_agreement_on() -> None:
    """What came before the last refusal, or before anybody asked, stays unheard, also if it is opened or read later."""
    willing, now = {ADA}, 5.0
    consent = Consent(willing.__contains__, clock=lambda: now)
    assert [consent.heard_since(each) for each in (ADA, BEN)] == [5.0, None]
    willing.add(BEN)
    now = 6.0
    assert [consent.heard_since(each) for each in (ADA, BEN)] == [5.0, 5.0]
    pcm = np.zeros(320, np.int16)
    said = voice.Utterance("1", BEN, 4.0, 4.5, 5.0, pcm)
    queue = EventQueue(heard_since=consent.heard_since)
    queue.put(voice.SpeechFrames(BEN, 1, at, pcm) for at in (4.0, 7.0))
    queue.put([said, voice.PauseBegan(said), voice.SpeakerLeft(BEN, 8.0), voice.SpeechFrames(ADA, 2, 8.0, pcm)])
    queue.close()
    willing.remove(ADA)
    assert [getattr(event, "captured_at", None) async for event in queue.read()] == [7.0, None]


@pytest.mark.parametrize(("discord_py", "davey"), [("2.8.0", "0.1.7"), ("2.6.4", "0.1.7"), ("2.7.1", "0.2.0b1")])
def test_other_versions_are_refused_with_those_that_work(discord_py: str, davey: str) -> None:
    with pytest.raises(ImportError, match=r"2\.7\.1"):
        require_versions(discord_py, davey)


def test_hearing_needs_no_model_and_no_bot() -> None:
    """What hears imports no inference runtime, no store and nothing of the bot; utterances need none either, until a
    model is loaded.
    """
    unneeded = ("onnxruntime", "ctranslate2", "faster_whisper", "av", "pydantic", "openai", "sqlalchemy", "bot")
    program = f"import sys, voice; voice.HearingClient; print([each for each in {unneeded} if each in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    assert ended.stdout.strip() == "[]"


def test_the_page_tells_each_public_name() -> None:
    page = (REPOSITORY / "docs" / "hearing.md").read_text("utf-8")
    names = [*voice.__all__, *(each for each in vars(HearingClient) if not each.startswith("_"))]
    # discord.py calls the one, and the connection the other.
    assert [each for each in names if each not in page] == ["release"]
    with pytest.raises(AttributeError):
        _ = voice.Nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize("local_guild", [GuildSpec(voice_channels=(Channel(CHANNEL, "Podium", stage=True),))])
async def test_a_stage_s_audience_cannot_speak(local_discord: DiscordForTests) -> None:
    async with stock_bot(local_discord.discord, BOT) as client:
        hearing, _ = await connect(client)
        await until(lambda: voice_channel(client).guild.me.voice, "the bot's place in the audience")
        with pytest.raises(discord.ClientException, match="audience"):
            hearing.play(Tone(0.1))
        await hearing.disconnect()
