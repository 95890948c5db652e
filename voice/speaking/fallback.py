"""Two voices as one: when the first fails, the second says the sentence, and the first is left alone for a while.

A person who waits for an answer hears another voice rather than nothing. After some failures in a row nobody waits
for the first any more, until it had time to recover; then one sentence tries it again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from voice.errors import SynthesisError

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.speaking.port import Speech, Synthesizer

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
        self._failures = 0
        self._rests_until: float | None = None

    async def synthesize(self, text: str) -> Speech:
        """Return `text` spoken by either. Raises `SynthesisError` with the second's reason when both fail."""
        if not self._resting:
            try:
                speech = await self._first.synthesize(text)
            except SynthesisError as error:
                self._failed(str(error))
            else:
                self._failures, self._rests_until = 0, None
                return speech
        return await self._second.synthesize(text)

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
