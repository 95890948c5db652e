"""How the bot reacts when people speak over a reply, with a real playback and a real replier."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from bot import events
from bot.brain.settings import BrainSettings
from bot.conversation.barge_in import BargeInHandler
from tests.bot.brain.replying import FIRST, ReplyBench
from tests.fakes.brain import FRAMES_A_WORD, ScriptedResponder, until
from tests.fakes.clock import FakeClock

ADA = 1
# The twenty words are 40 frames.
REPLY = " ".join(f"word{number}" for number in range(20)) + "."


class Room:
    """A bot in the middle of a reply, with the seconds that each person has spoken over it."""

    def __init__(self) -> None:
        self.bench = ReplyBench(ScriptedResponder(REPLY))
        self.clock = FakeClock()
        self.voiced: dict[int, float] = {}
        self.barge_in = BargeInHandler(
            cast("Any", self),
            self.bench.playback,
            self.bench.replier,
            cast("Any", SimpleNamespace(wake_names=BrainSettings().names, asks_for_silence=lambda *_: False)),
            clock=self.clock,
        )

    @property
    def voiced_s(self) -> dict[int, float]:
        """Return the seconds that each person has spoken."""
        return self.voiced

    @asynccontextmanager
    async def speaking(self) -> AsyncIterator[None]:
        """Let the bot begin to speak."""
        async with self.bench.running():
            self.bench.replier.ask(FIRST)
            await until(lambda: self.bench.replier.speaking)
            yield

    def frame(self) -> int:
        """Return the loudness at the end of the next frame, or -1 for silence."""
        frame = self.bench.playback.next_frame()
        return -1 if frame is None else int(np.abs(frame[-1]))

    def speak(self, seconds: float) -> None:
        """Let Ada speak for this long, in steps of 20 ms, while the bot's frames are played."""
        for _ in range(round(seconds / 0.02)):
            self.clock.advance(0.02)
            self.voiced[ADA] = self.voiced.get(ADA, 0.0) + 0.02
            self.barge_in.update()
            self.frame()

    def understood(self, text: str) -> None:
        """Report the text of Ada's speech."""
        self.voiced.clear()
        now = self.clock.monotonic()
        self.barge_in.on_event(events.UtteranceTranscribed("u1", ADA, text, now - 1.0, now, now))


async def test_a_real_interruption_silences_the_bot_and_is_told() -> None:
    """The bot becomes softer, then silent, and gives its reply up once the person's words are known."""
    room = Room()
    async with room.speaking():
        assert room.frame() == 100
        room.speak(0.3)
        assert room.frame() == 30
        room.speak(0.44)
        assert room.frame() == -1
        room.understood("But we leave on Friday.")
        reply = await room.bench.next_reply()
    assert reply.interrupted
    assert REPLY.startswith(reply.text)
    # 37 frames were played before the silence, including the one that faded out.
    assert len(reply.text.split()) == 37 // FRAMES_A_WORD


async def test_a_laugh_is_waited_out_and_the_reply_is_whole() -> None:
    """After a laugh the reply goes on where it stopped, and all of it is heard."""
    room = Room()
    async with room.speaking():
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
    for reason, interrupted in (("too_short", False), ("phantom_phrase", False), ("recogniser_failed", True)):
        room = Room()
        async with room.speaking():
            room.speak(0.74)
            room.voiced.clear()
            now = room.clock.monotonic()
            room.barge_in.on_event(events.SpeechDropped("u1", ADA, reason, "", now - 1, now, now))
            async with room.bench.listener.listening():
                reply = await room.bench.next_reply()
        assert reply.interrupted is interrupted, reason
