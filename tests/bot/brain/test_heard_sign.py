"""When a sign is given that a question was heard, and to whom it gives way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest

from bot.background_task import owned_task
from bot.brain.decider import Decision, Reason
from bot.brain.heard_sign import AFTER_S, HM, LOOK_EVERY_S, HeardSign, sign_due_at, soft_tone
from bot.brain.question import Question, Remark
from bot.brain.reply import Reply
from bot.brain.reply_life import Stop, Stopped
from bot.server_settings import HeardSignKind, ServerSettings, ServerSettingsBook
from bot.words import SESSION, Words
from compaction.model import Seq, Turn, TurnKind, TurnPart
from rehearsal.roomtone.written.channel import LoudnessDetector
from tests.fakes.brain import FakeVoice, Listener, until
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import loop_turns
from tests.fakes.questions import asked, perhaps
from tests.fakes.room_channel import FakeRoomChannel
from voice.audio import DISCORD_RATE_HZ
from voice.listening.listener import RoomListener
from voice.speaking.playback import Playback
from voice.speaking.port import Speech

LEASE = Words().lease({SESSION}, since=None)
TURN = Turn(Seq(7), TurnKind.SPEECH, 10.0, 11.0, (TurnPart("1", "Ada", "Roomtone, what now?"),))
ASKED = asked(TURN, ended_at=10.0)


@pytest.mark.parametrize(
    ("question", "last_words_at", "is_slow", "due_at"),
    [
        (ASKED, float("-inf"), False, 10.0 + AFTER_S),
        # The bot was still answering somebody else.
        (ASKED, 14.0, False, 14.0 + AFTER_S),
        # Nobody has said it, or nobody may be meant.
        (Remark(TURN, Reason.QUIET_ROOM), float("-inf"), False, None),
        (perhaps(ASKED), float("-inf"), True, None),
        # The model will take long, and the bot was called; or it was not.
        (ASKED, float("-inf"), True, 10.0),
        (replace(ASKED, decision=Decision(True, Reason.ENGAGED)), float("-inf"), True, 10.0 + AFTER_S),
    ],
)
def test_a_sign_is_due_after_a_pause(
    question: Question, last_words_at: float, is_slow: bool, due_at: float | None
) -> None:
    """It counts from the last words of anybody, and only somebody who certainly gets an answer waits for one. Where
    that will take long, it comes at once.
    """
    assert sign_due_at(question, last_words_at=last_words_at, is_slow=is_slow) == due_at


def test_the_tone_is_short_soft_and_wordless() -> None:
    """It begins and ends in silence, so that nothing clicks."""
    tone = soft_tone()
    assert (tone.text, tone.rate_hz, str(tone.pcm.dtype)) == ("", DISCORD_RATE_HZ, "int16")
    assert 0.1 < len(tone.pcm) / tone.rate_hz < 0.4
    assert 1_000 < np.abs(tone.pcm).max() < 8_000
    assert np.abs(tone.pcm[[0, -1]]).max() == 0


class Choice(ServerSettingsBook):
    """The settings of servers that have chosen one kind of sign."""

    def __init__(self, kind: HeardSignKind) -> None:
        self._chosen = ServerSettings(heard_sign=kind)

    def of(self, guild_id: int) -> ServerSettings:
        return self._chosen


class Ear(RoomListener):
    """Hears somebody while `speaks`."""

    speaks = False

    @property
    def sounding(self) -> frozenset[int]:
        return frozenset({1} if self.speaks else ())


class SignBench:
    """The signs of a room, and a reply that somebody waits for since `AFTER_S`."""

    def __init__(self, kind: HeardSignKind = "sound") -> None:
        self.clock = FakeClock()
        self.playback = Playback(monotonic=self.clock.monotonic)
        self.listener = Listener(self.playback)
        self.voice = FakeVoice()
        self.ear = Ear(LoudnessDetector())
        self.sign = HeardSign(self.playback, self.voice, self.clock, FakeRoomChannel(), Choice(kind), self.ear)

    def reply(self) -> Reply:
        """Return a reply to what somebody has just said."""
        now = self.clock.monotonic()
        reply = Reply(asked(TURN, ended_at=now), now, LEASE)
        reply.ask(reply.question)
        return reply

    @asynccontextmanager
    async def waiting(self, reply: Reply) -> AsyncIterator[asyncio.Task[None]]:
        """Let a reply take as long as a sign needs."""
        async with owned_task(self.sign.accompany(reply), name="sign-under-test") as task:
            await self.clock.until_somebody_sleeps()
            self.clock.advance(AFTER_S)
            await loop_turns(10)
            yield task

    async def passes(self, frames: int = 1) -> None:
        """Let frames be sent, and the sign look around."""
        self.listener.pull(frames)
        self.clock.advance(LOOK_EVERY_S)
        await loop_turns(10)


@pytest.mark.parametrize(("kind", "words"), [("sound", ""), ("word", str(HM))])
async def test_who_waits_gets_a_sign(kind: HeardSignKind, words: str) -> None:
    """It is played to its end, is no part of the reply, and its words are known as the bot's own: they may come back as
    an echo.
    """
    bench = SignBench(kind)
    reply = bench.reply()
    async with bench.waiting(reply) as task:
        assert bench.playback.speaking
        await bench.passes(100)
        await task
    assert bench.listener.frames > 0
    assert not reply.pieces
    assert bench.playback.words_between(0.0, bench.clock.monotonic()) == words


async def gives_way_to_the_answer(bench: SignBench, reply: Reply) -> None:
    reply.add(await bench.playback.queue(Speech("Now.", np.full(9_600, 100, np.int16), DISCORD_RATE_HZ)))


async def gives_way_to_somebody(bench: SignBench, _: Reply) -> None:
    bench.ear.speaks = True


async def gives_way_to_silence(_: SignBench, reply: Reply) -> None:
    reply.handle(Stopped(Stop.SILENCED))


async def gives_way_to_who_goes_on(_: SignBench, reply: Reply) -> None:
    reply.handle(Stopped(Stop.WENT_ON))


WAYS = (gives_way_to_the_answer, gives_way_to_somebody, gives_way_to_silence, gives_way_to_who_goes_on)


@pytest.mark.parametrize("way", WAYS)
async def test_a_sign_gives_way_at_once(way: object) -> None:
    """What comes then plays with the next frame."""
    assert callable(way)
    bench = SignBench()
    reply = bench.reply()
    async with bench.waiting(reply) as task:
        await bench.passes()
        await way(bench, reply)
        await bench.passes(0)
        assert task.done()
    assert bench.playback.pieces.waiting == len(reply.pieces)


@pytest.mark.parametrize("way", [*WAYS, None])
@pytest.mark.parametrize("kind", ["sound", "off"])
async def test_none_is_given_where_it_would_have_to_give_way(way: object, kind: HeardSignKind) -> None:
    """Nor if nobody wants one, or anything else of the bot plays."""
    bench = SignBench(kind)
    reply = bench.reply()
    if callable(way):
        await way(bench, reply)
    elif kind == "sound":
        await bench.playback.queue(Speech("I listen.", np.full(960, 100, np.int16), DISCORD_RATE_HZ))
    before = bench.playback.pieces.waiting
    async with bench.waiting(reply) as task:
        await task
    assert bench.playback.pieces.waiting == before


async def test_a_voice_that_takes_long_is_bridged_too() -> None:
    """The sign plays before the sentence that waits for its sound, which then plays whole."""
    bench = SignBench()
    reply = bench.reply()
    sentence = await bench.playback.open("Now.")
    reply.opened.append(sentence)
    async with bench.waiting(reply) as task:
        await bench.passes(100)
        await task
    assert bench.listener.frames > 0
    assert bench.playback.pieces.waiting == 1
    assert sentence.first_frame_at is None


async def test_no_two_signs_follow_each_other() -> None:
    """A second one comes only after an answer was heard."""
    bench = SignBench()
    given = []
    for heard in (False, True, False):
        reply = bench.reply()
        async with bench.waiting(reply) as task:
            given.append(bench.playback.speaking)
            await bench.passes(100)
            await task
        if heard:
            reply.first_audio_at = reply.ended_at = bench.clock.monotonic()
    assert given == [True, False, True]


async def test_who_calls_a_slow_model_gets_a_sign_while_the_answer_is_held() -> None:
    """The model took long before. Whoever goes on ends the sign."""
    bench = SignBench()
    slow = bench.reply()
    slow.on_first_token(slow.begun_at + AFTER_S)
    async with bench.waiting(slow):
        await bench.passes(100)
    slow.first_audio_at = slow.ended_at = bench.clock.monotonic()
    bench.clock.advance(1.0)
    held = Reply(replace(ASKED, ended_at=bench.clock.monotonic()), bench.clock.monotonic(), LEASE)
    async with owned_task(bench.sign.accompany(held), name="sign-under-test") as task:
        await bench.clock.until_somebody_sleeps()
        await bench.passes(0)
        assert bench.playback.speaking
        bench.ear.speaks = True
        await bench.passes(0)
        assert task.done()


async def test_a_voice_that_fails_gives_no_sign() -> None:
    """The reply goes on."""
    bench = SignBench("word")
    bench.voice.mute.add(str(HM))
    async with bench.waiting(bench.reply()) as task:
        await until(task.done)
        assert task.exception() is None
    assert not bench.playback.speaking
