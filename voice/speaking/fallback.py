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
from voice.speaking.pace import Pace, words_after

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from voice.speaking.port import Sound, Synthesizer

_log = structlog.get_logger()

# Two time-outs in a row are what a listener bears.
FAILURES_IN_A_ROW = 2
REST_S = 60.0


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
        self._failures_in_a_row = failures_in_a_row
        self._rest_s = rest_s
        self._monotonic = monotonic
        self._pace = Pace()
        self._failures = 0
        self._rests_until: float | None = None

    async def stream(self, text: str) -> AsyncGenerator[Sound, None]:
        """Yield `text` spoken by either; where the first breaks off, the second says the rest.

        Raises `SynthesisError` with the second's reason when both fail.
        """
        spoken_s = 0.0
        if not self._resting:
            try:
                async with aclosing(self._first.stream(text)) as stream:
                    async for sound in stream:
                        spoken_s += sound.duration_s
                        yield sound
            except SynthesisError as error:
                self._failed(str(error))
            else:
                self._failures, self._rests_until = 0, None
                self._pace.learn(text, spoken_s)
                return
        share = self._pace.share(text, spoken_s) if spoken_s else 0.0
        try:
            async with aclosing(self._second.stream(words_after(text, share))) as stream:
                async for sound in stream:
                    yield sound
        except SynthesisError as error:
            error.spoken_share = share + (1.0 - share) * error.spoken_share
            raise

    @property
    def _resting(self) -> bool:
        if self._rests_until is None or self._monotonic() < self._rests_until:
            return self._rests_until is not None
        # One sentence tries; the others that come meanwhile do not wait for it.
        self._rests_until = self._monotonic() + self._rest_s
        _log.info("voice_tried_again")
        return False

    def _failed(self, problem: str) -> None:
        self._failures += 1
        _log.warning("voice_failed", problem=problem, failures=self._failures)
        if self._failures >= self._failures_in_a_row:
            self._rests_until = self._monotonic() + self._rest_s
