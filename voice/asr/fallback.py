"""Two recognisers as one: where the first fails the second hears, and the first is left alone for a while.

What somebody said is heard late rather than not at all. After some failures in a row nobody waits for the first any
more, until it had time to recover; then one utterance tries it again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import structlog

from voice.errors import RecogniserError, RecogniserOverloadedError
from voice.rest import FAILURES_IN_A_ROW, REST_S, Rest, Resting

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.asr.port import Recognition, Recognizer
    from voice.audio import Pcm

_log: Any = structlog.get_logger()


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
        self._rest = Rest(
            failures_in_a_row=failures_in_a_row,
            rest_s=rest_s,
            monotonic=monotonic,
            on_try=lambda: _log.info("recogniser_tried_again"),
        )

    @property
    def resting(self) -> Resting | None:
        """Return since when and why the first is left alone; None if it is not."""
        return self._rest.resting

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
        if self._rest.begin():
            try:
                heard = await self._first.recognize(
                    pcm, language=language, glossary=glossary, speaker_id=speaker_id, interim=interim
                )
            except RecogniserOverloadedError:
                # It is busy, not broken; the guess goes, as under any load.
                raise
            except RecogniserError as error:
                _log.warning("remote_recogniser_failed", problem=str(error), failures=self._rest.failed(str(error)))
            else:
                self._rest.succeeded()
                return heard
        return await self._second.recognize(
            pcm, language=language, glossary=glossary, speaker_id=speaker_id, interim=interim
        )

    def confirm(self, speaker_id: int) -> None:
        """See `Recognizer.confirm`."""
        self._first.confirm(speaker_id)
        self._second.confirm(speaker_id)
