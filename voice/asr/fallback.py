"""Combines two recognisers: when the first fails, the second takes the utterance.

After some failures in a row a circuit breaker stops calls to the first recogniser. Later one utterance tries it again.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import structlog

from voice.circuit_breaker import CircuitBreaker, CircuitState
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.asr.port import Recognition, Recognizer
    from voice.audio import Pcm
    from voice.circuit_breaker import Outage

_log: Any = structlog.get_logger()


class FallbackRecognizer:
    """Calls `first`, and `second` if it fails (`voice.asr.port.Recognizer`). Use it on one event loop."""

    def __init__(
        self,
        first: Recognizer,
        second: Recognizer,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first = first
        self._second = second
        self._monotonic = monotonic
        self._breaker = CircuitBreaker()

    @property
    def outage(self) -> Outage | None:
        """The outage of the first recogniser, or None while it is used."""
        return self._breaker.outage

    async def recognize(
        self,
        pcm: Pcm,
        *,
        language: str | None = None,
        glossary: tuple[str, ...] = (),
        speaker_id: int | None = None,
        interim: bool = False,
        careful: bool = False,
    ) -> Recognition:
        """See `Recognizer.recognize`. Raises the second recogniser's error when both fail."""
        if self._breaker.admits(self._monotonic()):
            trial = self._breaker.state is CircuitState.HALF_OPEN
            if trial:
                _log.info("recogniser_tried_again")
            try:
                heard = await self._first.recognize(
                    pcm,
                    language=language,
                    glossary=glossary,
                    speaker_id=speaker_id,
                    interim=interim,
                    careful=careful,
                )
            except (RecogniserOverloadedError, asyncio.CancelledError):
                # The first recogniser is busy, not broken: drop the interim, as under any load. An interim is cancelled
                # when somebody speaks on. Neither tells whether the recogniser is back.
                if trial:
                    self._breaker.abandon_trial(self._monotonic())
                raise
            except RecogniserError as error:
                self._breaker.record_failure(self._monotonic(), error)
                _log.warning("remote_recogniser_failed", problem=error, failures=self._breaker.failures)
            else:
                self._breaker.record_success()
                return heard
        return await self._second.recognize(
            pcm, language=language, glossary=glossary, speaker_id=speaker_id, interim=interim, careful=careful
        )

    def confirm(self, speaker_id: int) -> None:
        self._first.confirm(speaker_id)
        self._second.confirm(speaker_id)
