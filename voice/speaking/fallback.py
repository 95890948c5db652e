"""Two voices as one: when the first fails, the second says the sentence, and the first is left alone for a while.

A person who waits for an answer hears another voice rather than nothing; a sentence that broke off is finished by it,
as near to the word as the first voice's pace tells. After some failures in a row nobody waits
for the first any more, until it had time to recover; then one sentence tries it again.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING

import structlog

from voice.errors import SynthesisError
from voice.rest import FAILURES_IN_A_ROW, REST_S, Rest, Resting
from voice.speaking.pace import Pace, words_after

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from voice.speaking.port import Sound, Synthesizer

_log = structlog.get_logger()


class FallbackSynthesizer:
    """`first`, and `second` where it fails (`voice.speaking.port.Synthesizer`). Use it on one event loop."""

    def __init__(
        self,
        first: Synthesizer,
        second: Synthesizer,
        *,
        failures_in_a_row: int = FAILURES_IN_A_ROW,
        rest_s: float = REST_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first = first
        self._second = second
        self._rest = Rest(
            failures_in_a_row=failures_in_a_row,
            rest_s=rest_s,
            monotonic=monotonic,
            on_try=lambda: _log.info("voice_tried_again"),
        )
        self._pace = Pace()

    @property
    def resting(self) -> Resting | None:
        """Return since when and why the first is left alone; None if it is not."""
        return self._rest.resting

    async def stream(self, text: str) -> AsyncGenerator[Sound, None]:
        """Yield `text` spoken by either; where the first breaks off, the second says the rest.

        Raises `SynthesisError` with the reasons of both when both fail.
        """
        spoken_s = 0.0
        if self._rest.begin():
            try:
                async with aclosing(self._first.stream(text)) as stream:
                    async for sound in stream:
                        spoken_s += sound.duration_s
                        yield sound
            except SynthesisError as error:
                _log.warning("voice_failed", problem=str(error), failures=self._rest.failed(str(error)))
            else:
                self._rest.succeeded()
                self._pace.learn(text, spoken_s)
                return
        share = self._pace.share(text, spoken_s) if spoken_s else 0.0
        try:
            async with aclosing(self._second.stream(words_after(text, share))) as stream:
                async for sound in stream:
                    yield sound
        except SynthesisError as error:
            reasons = filter(None, dict.fromkeys((self._rest.problem, str(error))))
            raise SynthesisError(" ".join(reasons), spoken_share=share + (1.0 - share) * error.spoken_share) from error
