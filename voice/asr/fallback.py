"""Two recognisers as one: where the first fails the second hears, and the first is left alone for a while.

What somebody said is heard late rather than not at all. After some failures in a row nobody waits for the first any
more, until it had time to recover; then one utterance tries it again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import structlog

from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.asr.port import Recognition, Recognizer
    from voice.audio import Pcm

_log: Any = structlog.get_logger()

# Two time-outs in a row are what a conversation bears.
FAILURES_IN_A_ROW = 2
REST_S = 60.0


class FallbackRecognizer:
    """`first`, and `second` where it fails (`voice.asr.port.Recognizer`). Use it on one event loop."""

    def __init__(
        self,
        first: Recognizer,
        second: Recognizer,
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

    async def recognize(
        self,
        pcm: Pcm,
        *,
        language: str | None = None,
        glossary: tuple[str, ...] = (),
        speaker_id: int | None = None,
        interim: bool = False,
    ) -> Recognition:
        """See `Recognizer.recognize`. Raises the second's error when both fail."""
        if not self._resting:
            try:
                heard = await self._first.recognize(
                    pcm, language=language, glossary=glossary, speaker_id=speaker_id, interim=interim
                )
            except RecogniserOverloadedError:
                # It is busy, not broken; the guess goes, as under any load.
                raise
            except RecogniserError as error:
                self._failed(str(error))
            else:
                self._failures, self._rests_until = 0, None
                return heard
        return await self._second.recognize(
            pcm, language=language, glossary=glossary, speaker_id=speaker_id, interim=interim
        )

    def confirm(self, speaker_id: int) -> None:
        """See `Recognizer.confirm`."""
        self._first.confirm(speaker_id)
        self._second.confirm(speaker_id)

    @property
    def _resting(self) -> bool:
        if self._rests_until is None or self._monotonic() < self._rests_until:
            return self._rests_until is not None
        # One utterance tries; the others that come meanwhile do not wait for it.
        self._rests_until = self._monotonic() + self._rest_s
        _log.info("recogniser_tried_again")
        return False

    def _failed(self, problem: str) -> None:
        self._failures += 1
        _log.warning("remote_recogniser_failed", problem=problem, failures=self._failures)
        if self._failures >= self._failures_in_a_row:
            self._rests_until = self._monotonic() + self._rest_s
