"""Streams that are read before anybody wants them: the pieces of a reply, and the sound of its first sentence.

What has come is kept until the stream is taken over or given up. How it failed is told only to who takes it over.
Nothing is played from here.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from bot.texts.text import Text
from voice.cancellation import is_being_cancelled
from voice.errors import SynthesisError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from voice.speaking.port import AudioChunk, Synthesizer

# The failure of a sentence whose voice waited for something that was cancelled elsewhere.
VOICE_BROKE_OFF = Text("My voice broke off in the middle of a sentence. Ask me again.")


ItemT = TypeVar("ItemT")


class ReadAhead(Generic[ItemT]):
    """A stream that a task of its own reads at once. No item is None or an exception.

    `name`: of the task. `broken_off`: returns the failure of a stream that waited for something that was cancelled
    elsewhere, and raises the error if the task is being cancelled itself. *Ownership*: `tasks` owns the task; nothing
    that happens in the stream ends the group.
    """

    def __init__(
        self,
        stream: AsyncGenerator[ItemT, None],
        tasks: asyncio.TaskGroup,
        *,
        name: str,
        broken_off: Callable[[asyncio.CancelledError], Exception],
    ) -> None:
        self._broken_off = broken_off
        # The items, an error if there was one, and None at the end. It has no size: who makes the stream bounds it, and
        # one that had to wait for its reader would not be ahead.
        self._items: asyncio.Queue[ItemT | Exception | None] = asyncio.Queue()
        self._task = tasks.create_task(self._read(stream), name=name)

    def cancel(self) -> None:
        """Give the stream up; it ends."""
        self._task.cancel()

    async def take(self) -> AsyncGenerator[ItemT, None]:
        """Yield the stream from its beginning: what is ready at once, the rest as it comes. Raises its error. Call it
        once. *Cancellation*: closing the generator ends the stream.
        """
        try:
            while (item := await self._items.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.cancel()

    async def _read(self, stream: AsyncGenerator[ItemT, None]) -> None:
        try:
            async with aclosing(stream):
                async for item in stream:
                    self._items.put_nowait(item)
        except asyncio.CancelledError as error:
            self._items.put_nowait(self._broken_off(error))
        except Exception as error:  # noqa: BLE001 - raised again in `take`, if the stream is wanted
            self._items.put_nowait(error)
        finally:
            # Also if this task was cancelled: nobody may wait for more.
            self._items.put_nowait(None)


@dataclass(frozen=True, slots=True)
class _Begun:
    text: str
    sound: ReadAhead[AudioChunk]


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
        # One sentence, of which a voice makes some minutes of sound at most (`voice.speaking.openai.MAX_SOUND_S`).
        sound = ReadAhead(self._voice.stream(text), tasks, name="speech-ahead", broken_off=_broken_off)
        self._begun = _Begun(text, sound)

    def discard(self) -> None:
        """Stop the synthesis in progress and drop its sound, if there is any."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.sound.cancel()

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield the sound of `text`; what is ready comes at once. See `Synthesizer.stream`."""
        begun = self._begun
        if begun is None or begun.text != text:
            sounds = self._voice.stream(text)
        else:
            sounds, self._begun = begun.sound.take(), None
        async with aclosing(sounds) as stream:
            async for sound in stream:
                yield sound


def _broken_off(error: asyncio.CancelledError) -> SynthesisError:
    """See `bot.brain.generation.broken_off`."""
    if is_being_cancelled():
        raise error
    return SynthesisError(VOICE_BROKE_OFF)
