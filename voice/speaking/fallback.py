"""Combines two voices: when the first fails, the second speaks the sentence.

If the first voice breaks off within a sentence, the second speaks the rest. The rest is estimated from the first
voice's usual speed. After some failures in a row a circuit breaker stops calls to the first voice. Later one sentence
tries it again.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING

import structlog

from voice.circuit_breaker import CircuitBreaker, Outage
from voice.errors import SynthesisError, UnreadableTextError
from voice.speaking.speech_rate import SpeechRate, words_after

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from voice.speaking.port import AudioChunk, Synthesizer

_log = structlog.get_logger()


class FallbackSynthesizer:
    """Calls `first`, and `second` if it fails or cannot read the text (`voice.speaking.port.Synthesizer`). Use it on
    one event loop.
    """

    def __init__(
        self,
        first: Synthesizer,
        second: Synthesizer,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first = first
        self._second = second
        self._monotonic = monotonic
        self._breaker = CircuitBreaker()
        self._rate = SpeechRate()

    @property
    def outage(self) -> Outage | None:
        """Return the outage of the first voice, or None while it is used."""
        return self._breaker.outage

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield `text` as sound from either voice. If the first voice breaks off, the second speaks the rest.

        Raises `SynthesisError` with the reasons of both voices when both fail, `UnreadableTextError` when neither can
        read the text.
        """
        spoken_s = 0.0
        unreadable: UnreadableTextError | None = None
        if self._breaker.admits(self._monotonic()):
            if self._breaker.on_trial:
                _log.info("voice_tried_again")
            try:
                async with aclosing(self._first.stream(text)) as stream:
                    async for sound in stream:
                        spoken_s += sound.duration_s
                        yield sound
            except UnreadableTextError as error:
                # The voice works, and goes on with the next sentence.
                self._breaker.abandon_trial(self._monotonic())
                unreadable = error
            except SynthesisError as error:
                self._breaker.record_failure(self._monotonic(), error)
                _log.warning("voice_failed", problem=error, failures=self._breaker.failures)
            else:
                self._breaker.record_success()
                self._rate.learn(text, spoken_s)
                return
        share = self._rate.spoken_share(text, spoken_s) if spoken_s else 0.0
        try:
            async with aclosing(self._second.stream(words_after(text, share))) as stream:
                async for sound in stream:
                    yield sound
        except SynthesisError as error:
            if unreadable is not None and isinstance(error, UnreadableTextError):
                raise
            share += (1.0 - share) * error.spoken_share
            first = unreadable or self._breaker.problem
            if first is None or str(error) in {"", str(first)}:
                raise SynthesisError("{why}", why=first or error, spoken_share=share) from error
            raise SynthesisError("{first} {second}", first=first, second=error, spoken_share=share) from error
