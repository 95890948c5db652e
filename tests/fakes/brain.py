"""A responder, a voice and a listener for tests of the brain: scripted, instant, and failing where asked."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import numpy as np

from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ
from voice.errors import SynthesisError
from voice.speaking.port import AudioChunk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from bot.brain.context import ModelContext
    from voice.speaking.playback import Playback

# So many frames a word, so that a share of the sound is a share of the words.
FRAMES_A_WORD = 2


# Turns of the event loop after which what a test waits for is not coming.
PATIENCE = 10_000


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop turn until `holds`."""
    for _ in range(PATIENCE):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("what was waited for did not come")


class ScriptedResponder:
    """Yields its pieces; an exception among them is raised, an event is waited for. Keeps every context."""

    def __init__(self, *pieces: str | Exception | asyncio.Event) -> None:
        self.pieces = pieces
        self.contexts: list[ModelContext] = []

    async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield the script."""
        self.contexts.append(context)
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            else:
                yield piece


class FakeVoice:
    """Speaks some frames a word. Texts in `mute` fail; text and word number: `breaks` fail there, `waits` wait."""

    def __init__(self) -> None:
        self.spoken: list[str] = []
        self.frames_a_word = FRAMES_A_WORD
        self.mute: set[str] = set()
        self.breaks: set[tuple[str, int]] = set()
        self.waits: dict[tuple[str, int], asyncio.Event] = {}

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield the text as a quiet tone, word by word."""
        if text in self.mute:
            raise SynthesisError("The voice is hoarse. Give it tea.")
        self.spoken.append(text)
        words = text.split()
        for number, _ in enumerate(words):
            if (text, number) in self.breaks:
                raise SynthesisError("The voice broke. Give it tea.", spoken_share=number / len(words))
            if (wait := self.waits.get((text, number))) is not None:
                await wait.wait()
            yield AudioChunk(np.full(self.frames_a_word * DISCORD_FRAME_SAMPLES, 100, dtype=np.int16), DISCORD_RATE_HZ)


class Listener:
    """Pulls frames off a playback as a voice connection does, but as fast as the loop turns."""

    def __init__(self, playback: Playback) -> None:
        self._playback = playback
        self.frames = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Pull in the background."""
        async with asyncio.TaskGroup() as tasks:
            pulling = tasks.create_task(self._pull(), name="listener")
            yield
            pulling.cancel()

    def pull(self, frames: int) -> None:
        """Take so many frames now."""
        for _ in range(frames):
            self.frames += self._playback.next_frame() is not None

    async def _pull(self) -> None:
        while True:
            self.pull(1)
            await asyncio.sleep(0)
