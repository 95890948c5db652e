"""The voice of one room: the one that its server has chosen, or the bot's usual one.

A change applies to the next sentence. If the chosen voice fails, the usual one says the sentence, and the channel is
told once.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.models.voices import find_voice
from bot.texts.text import Text, sentence_of
from voice.errors import SynthesisError
from voice.speaking.fallback import FallbackSynthesizer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from bot.models.voices import EmbeddedVoice
    from voice.speaking.port import AudioChunk, Synthesizer

log = structlog.get_logger()


class VoiceSource(Protocol):
    """Has the embedded voices; `bot.models.loaded_voices.LoadedVoices` implements it."""

    def using(self, voice: EmbeddedVoice) -> AbstractAsyncContextManager[Synthesizer]:
        """Yield a voice, loaded. Raises `SynthesisError`."""

    def prepare(self, voice: EmbeddedVoice) -> None:
        """Begin to load a voice that will be wanted soon."""


class ServerVoice:
    """Speaks with the voice that `chosen` names, and with `usual` if it names none (`voice.speaking.port.Synthesizer`).

    `tell` writes into the channel.
    """

    def __init__(
        self,
        *,
        chosen: Callable[[], str | None],
        voices: VoiceSource,
        usual: Synthesizer,
        tell: Callable[[Text], Awaitable[None]],
    ) -> None:
        self._chosen = chosen
        self._voices = voices
        self._usual = usual
        self._tell = tell
        self._name: str | None = None
        self._voice: _ChosenVoice | None = None
        self._speaker = usual
        self._told: set[str] = set()
        name = chosen()
        voice = None if name is None else find_voice(name)
        if voice is not None:
            voices.prepare(voice)

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield `text` as sound. Raises `SynthesisError` if the usual voice fails too."""
        self._choose()
        chosen = self._voice
        async with aclosing(self._speaker.stream(text)) as stream:
            async for sound in stream:
                yield sound
        if chosen is not None and chosen.problem is not None and chosen.name not in self._told:
            self._told.add(chosen.name)
            problem = sentence_of(chosen.problem)
            await self._tell(
                Text(
                    "I cannot speak with the voice {voice} now and use my usual one. {why} /voice choose sets another.",
                    voice=chosen.name.capitalize(),
                    why=problem,
                )
            )

    def _choose(self) -> None:
        """Follow what the server has chosen."""
        name = self._chosen()
        if name == self._name:
            return
        self._name = name
        self._voice = None if name is None else _ChosenVoice(name, self._voices)
        self._speaker = self._usual if self._voice is None else FallbackSynthesizer(self._voice, self._usual)


class _ChosenVoice:
    """A chosen voice, which is loaded when it speaks. `problem`: why it failed last; None: it has not."""

    def __init__(self, name: str, voices: VoiceSource) -> None:
        self.name = name
        self.voice = find_voice(name)
        self.problem: SynthesisError | None = None
        self._voices = voices

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        try:
            if self.voice is None:
                raise SynthesisError(Text("I no longer have a voice of that name."))
            async with self._voices.using(self.voice) as synthesizer, aclosing(synthesizer.stream(text)) as stream:
                async for sound in stream:
                    yield sound
        except SynthesisError as error:
            self.problem = error
            raise
