"""How the bot reacts when people speak over a reply, with a real playback and a real replier."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np

from bot import events
from bot.conversation.barge_in import BargeInHandler
from rehearsal.roomtone.written.channel import LoudnessDetector
from tests.bot.conversation.talk_scene import TalkScene, a_scene
from tests.fakes.brain import FRAMES_A_WORD
from tests.fakes.clock import FakeClock
from tests.fakes.hearing import speech
from tests.fakes.room_channel import ADA
from voice.listening.listener import RoomListener
from voice.transport.audio_events import SpeakerLeft

# The twenty words are 40 frames.
REPLY = " ".join(f"word{number}" for number in range(20)) + "."
FRAME_S = 0.02


class Interrupted:
    """A bot in the middle of a reply, and the listener that hears Ada speak over it."""

    def __init__(self, scene: TalkScene) -> None:
        self.bench = scene.bench
        self.clock = FakeClock()
        self.listener = RoomListener(LoudnessDetector())
        self.barge_in = BargeInHandler(
            self.listener, self.bench.playback, self.bench.replier, scene.participation, clock=self.clock
        )

    def frame(self) -> int:
        """Return the loudness at the end of the next frame, or -1 for silence."""
        frame = self.bench.playback.next_frame()
        return -1 if frame is None else int(np.abs(frame[-1]))

    def speak(self, seconds: float) -> None:
        """Let Ada speak for this long, frame by frame, while the bot's frames are played."""
        for _ in range(round(seconds / FRAME_S)):
            begun_at = self.clock.monotonic()
            self.clock.advance(FRAME_S)
            self.listener.hear(speech(ADA.id, at=begun_at, seconds=FRAME_S)[:1], self.clock.monotonic())
            self.barge_in.update()
            self.frame()

    def fall_silent(self) -> float:
        """Let Ada's speech be over. Return when."""
        now = self.clock.monotonic()
        self.listener.hear([SpeakerLeft(ADA.id, now)], now)
        return now

    def understood(self, text: str) -> None:
        """Report the text of Ada's speech."""
        now = self.fall_silent()
        self.barge_in.on_event(events.UtteranceTranscribed("u1", ADA.id, text, now - 1.0, now, now))


@asynccontextmanager
async def interrupted() -> AsyncIterator[Interrupted]:
    """Let the bot begin to speak."""
    async with a_scene(REPLY) as scene:
        await scene.until_speaking()
        yield Interrupted(scene)


async def test_a_real_interruption_silences_the_bot_and_is_told() -> None:
    """The bot becomes softer, then silent, and gives its reply up once the person's words are known."""
    async with interrupted() as room:
        assert room.frame() == 100
        room.speak(0.3)
        assert room.frame() == 30
        room.speak(0.44)
        assert room.frame() == -1
        room.understood("But we leave on Friday.")
        reply = await room.bench.next_reply()
    assert reply.interrupted
    assert REPLY.startswith(reply.text)
    # 38 frames were played before the silence, including the one that faded out.
    assert len(reply.text.split()) == 38 // FRAMES_A_WORD


async def test_a_laugh_is_waited_out_and_the_reply_is_whole() -> None:
    """After a laugh the reply goes on where it stopped, and all of it is heard."""
    async with interrupted() as room:
        room.speak(0.74)
        assert room.frame() == -1
        room.understood("Hahaha!")
        async with room.bench.listener.listening():
            reply = await room.bench.next_reply()
    assert (reply.text, reply.interrupted) == (REPLY, False)


async def test_noise_that_became_no_text_is_waited_out_too() -> None:
    """After dropped noise the reply goes on. If the recogniser failed, the reply is given up, because somebody may have
    spoken.
    """
    for reason, gives_way in (("too_short", False), ("phantom_phrase", False), ("recogniser_failed", True)):
        async with interrupted() as room:
            room.speak(0.74)
            now = room.fall_silent()
            room.barge_in.on_event(events.SpeechDropped("u1", ADA.id, reason, "", now - 1, now, now))
            async with room.bench.listener.listening():
                reply = await room.bench.next_reply()
        assert reply.interrupted is gives_way, reason
