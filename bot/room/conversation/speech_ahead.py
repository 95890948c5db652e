"""A voice that begins to synthesise the first sentence of a reply before it is certain that the reply is wanted.

The sound is kept until the reply asks for exactly this sentence, or is discarded. Nothing is played from here.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from voice.errors import SynthesisError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from voice.speaking.port import AudioChunk, Synthesizer


class _Begun:
    def __init__(self, text: str) -> None:
        self.text = text
        # The chunks of one sentence, an error if there was one, and None at the end.
        self.sound: asyncio.Queue[AudioChunk | SynthesisError | None] = asyncio.Queue()
        self.task: asyncio.Task[None] | None = None


class SpeechAhead:
    """A `Synthesizer` of one room that may have begun with a sentence; it holds one at most.

    *Ownership*: the task group that `begin` is given owns the synthesis in progress.
    """

    def __init__(self, voice: Synthesizer) -> None:
        self._voice = voice
        self._begun: _Begun | None = None

    def begin(self, text: str, tasks: asyncio.TaskGroup) -> None:
        """Begin to synthesise `text`, in place of what was begun before."""
        self.discard()
        begun = self._begun = _Begun(text)
        begun.task = tasks.create_task(self._synthesise(begun), name="speech-ahead")

    def discard(self) -> None:
        """Stop the synthesis in progress and drop its sound, if there is any."""
        begun, self._begun = self._begun, None
        if begun is not None and begun.task is not None:
            begun.task.cancel()

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield the sound of `text`; what is ready comes at once. See `Synthesizer.stream`."""
        begun = self._begun
        if begun is None or begun.text != text:
            async with aclosing(self._voice.stream(text)) as stream:
                async for sound in stream:
                    yield sound
            return
        self._begun = None
        try:
            while (item := await begun.sound.get()) is not None:
                if isinstance(item, SynthesisError):
                    raise item
                yield item
        finally:
            if begun.task is not None:
                begun.task.cancel()

    async def _synthesise(self, begun: _Begun) -> None:
        try:
            async with aclosing(self._voice.stream(begun.text)) as stream:
                async for sound in stream:
                    begun.sound.put_nowait(sound)
        except SynthesisError as error:
            begun.sound.put_nowait(error)
        finally:
            begun.sound.put_nowait(None)
