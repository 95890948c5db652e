"""A voice that begins to synthesise the first sentence of a reply before it is certain that the reply is wanted.

The sound is kept until the reply asks for exactly this sentence, or is discarded. Nothing is played from here.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.room.conversation.read_ahead import ReadAhead
from bot.texts.text import Text
from voice.cancellation import is_being_cancelled
from voice.errors import SynthesisError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator

    from voice.speaking.port import AudioChunk, Synthesizer

# The failure of a sentence whose voice waited for something that was cancelled elsewhere.
VOICE_BROKE_OFF = Text("My voice broke off in the middle of a sentence. Ask me again.")


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
