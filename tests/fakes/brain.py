"""Test doubles for the brain: a scripted responder, a fake voice and a listener. They answer without delay and fail
where the test asks for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import numpy as np

from bot.brain.context import ModelContext
from tests.patience import PATIENCE_S
from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ
from voice.errors import SynthesisError, UnreadableTextError
from voice.speaking.playback import Playback
from voice.speaking.port import AudioChunk

# Every word has the same number of frames, so a share of the sound corresponds to the same share of the words.
FRAMES_A_WORD = 2


async def until(holds: Callable[[], bool]) -> None:
    """Let the event loop run until `holds` returns true. It may take a socket or a thread to bring that about."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0)


class ScriptedResponder:
    """Yields its pieces in order. A piece that is an exception is raised, and a piece that is an event is waited for.
    `contexts` keeps every context that was passed.
    """

    def __init__(self, *pieces: str | BaseException | asyncio.Event) -> None:
        self.pieces = pieces
        self.contexts: list[ModelContext] = []

    async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield the pieces of the script."""
        self.contexts.append(context)
        if context.on_sent is not None:
            context.on_sent(context.parts)
        for piece in self.pieces:
            if isinstance(piece, BaseException):
                raise piece
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            else:
                yield piece


class FakeVoice:
    """Speaks each word as a fixed number of frames.

    A text in `mute` fails at once, one in `unreadable` cannot be read. `breaks` and `waits` name a text and the number
    of a word: at that word the voice fails, or waits for the event.
    """

    def __init__(self) -> None:
        self.language = ""
        self.spoken: list[str] = []
        self.frames_a_word = FRAMES_A_WORD
        self.mute: set[str] = set()
        self.unreadable: set[str] = set()
        self.breaks: set[tuple[str, int]] = set()
        self.waits: dict[tuple[str, int], asyncio.Event] = {}

    def prefer(self, language: str) -> None:
        """Speak it from now on."""
        self.language = language

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield the text as a quiet tone, word by word."""
        if text in self.mute:
            raise SynthesisError("The voice is hoarse. Give it tea.")
        if text in self.unreadable:
            raise UnreadableTextError("The voice has no glasses.")
        self.spoken.append(text)
        words = text.split()
        for number, _ in enumerate(words):
            if (text, number) in self.breaks:
                raise SynthesisError("The voice broke. Give it tea.", spoken_share=number / len(words))
            if (wait := self.waits.get((text, number))) is not None:
                await wait.wait()
            yield AudioChunk(np.full(self.frames_a_word * DISCORD_FRAME_SAMPLES, 100, dtype=np.int16), DISCORD_RATE_HZ)


class Listener:
    """Pulls frames from a playback as a voice connection does, but as fast as the event loop runs."""

    def __init__(self, playback: Playback) -> None:
        self._playback = playback
        self.frames = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Pull frames in the background until the block ends."""
        async with asyncio.TaskGroup() as tasks:
            pulling = tasks.create_task(self._pull(), name="listener")
            yield
            pulling.cancel()

    def pull(self, frames: int) -> None:
        """Pull `frames` frames now."""
        for _ in range(frames):
            self.frames += self._playback.next_frame() is not None

    async def _pull(self) -> None:
        while True:
            self.pull(1)
            await asyncio.sleep(0)
