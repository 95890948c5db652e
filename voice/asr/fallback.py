"""Asks a recogniser elsewhere, and counts what becomes of each request. If it fails, a second one takes the utterance.

After some failures in a row a circuit breaker stops calls to the first recogniser. Later one utterance tries it again.

A busy recogniser serves finished speech first. So it may leave an interim or a careful pass without an answer
although it works, and their failures do not open the breaker, unless it cannot be reached at all. After such a
failure, interims are sent as finished speech until the first recogniser has answered something; what is sent so counts.
Otherwise nobody would find out that a recogniser hangs, because nearly all speech is recognised in pauses, while it is
unfinished.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import structlog

from voice.circuit_breaker import CircuitBreaker, Outage
from voice.errors import RecogniserError, RecogniserLateError, RecogniserOverloadedError, RecogniserUnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.asr.port import Recogniser, Recognition, RecognitionRequest

_log: Any = structlog.get_logger()


class RemoteOutcome(StrEnum):
    """What became of a request at a recogniser elsewhere. Each request has one."""

    COMPLETED = "completed"
    # An interim or a careful pass for which there was no room. No other recogniser hears it.
    SHED = "shed"
    # The caller no longer wanted it: mostly somebody spoke on.
    CANCELLED = "cancelled"
    # From here on the recogniser behind it gets it, if there is one.
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    # Refused, or answered with what cannot be read.
    FAILED = "failed"
    # Not asked, because it kept failing.
    SKIPPED = "skipped"


# Of several that fit, the first.
_OUTCOMES: tuple[tuple[type[BaseException], RemoteOutcome], ...] = (
    (asyncio.CancelledError, RemoteOutcome.CANCELLED),
    (RecogniserOverloadedError, RemoteOutcome.SHED),
    (RecogniserUnreachableError, RemoteOutcome.UNREACHABLE),
    (RecogniserLateError, RemoteOutcome.TIMED_OUT),
    (RecogniserError, RemoteOutcome.FAILED),
)


class FallbackRecogniser:
    """Calls `first`, and `second` if it fails (`voice.asr.port.Recogniser`). Use it on one event loop.

    `second` None: nobody hears what `first` does not, so it is always asked. `observe`: gets what became of each
    request at `first`, and how many seconds that took.
    """

    def __init__(
        self,
        first: Recogniser,
        second: Recogniser | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        observe: Callable[[RemoteOutcome, float], None] = lambda _outcome, _seconds: None,
    ) -> None:
        self._first = first
        self._second = second
        self._monotonic = monotonic
        self._observe = observe
        self._breaker = CircuitBreaker()
        # Whether an interim or a careful pass has failed since the first recogniser last answered.
        self._in_doubt = False
        # When a request that counted failed last.
        self._counted_at = -math.inf

    @property
    def outage(self) -> Outage | None:
        """The outage of the first recogniser, or None while it is used."""
        return self._breaker.outage

    async def recognise(self, request: RecognitionRequest) -> Recognition:
        """See `Recogniser.recognise`. Raises the second recogniser's error when both fail."""
        second = self._second
        if second is None or self._may_ask_first(careful=request.careful):
            is_trial = self._breaker.on_trial
            counts = second is not None and not request.careful and (is_trial or self._in_doubt or not request.interim)
            asked_at = self._monotonic()
            try:
                heard = await self._first.recognise(replace(request, interim=request.interim and not counts))
            except (RecogniserError, asyncio.CancelledError) as error:
                outcome = next(outcome for kind, outcome in _OUTCOMES if isinstance(error, kind))
                self._observe(outcome, self._monotonic() - asked_at)
                # The first recogniser is busy, not broken: drop the interim, as under any load. An interim is cancelled
                # when somebody speaks on. Neither tells whether the recogniser is back.
                if isinstance(error, RecogniserOverloadedError | asyncio.CancelledError):
                    if is_trial:
                        self._breaker.abandon_trial(self._monotonic())
                    raise
                if second is None:
                    raise
                # Several requests may have been on a connection that broke once.
                is_away = outcome is RemoteOutcome.UNREACHABLE and asked_at >= self._counted_at
                self._on_failure(error, counts=counts or is_away)
            else:
                self._observe(RemoteOutcome.COMPLETED, self._monotonic() - asked_at)
                self._in_doubt = False
                self._breaker.record_success()
                return heard
        else:
            self._observe(RemoteOutcome.SKIPPED, 0.0)
        assert second is not None, "without one the error was raised"
        return await second.recognise(request)

    def confirm(self, speaker_id: int) -> None:
        self._first.confirm(speaker_id)
        if self._second is not None:
            self._second.confirm(speaker_id)

    def _may_ask_first(self, *, careful: bool) -> bool:
        """Return whether to ask the first recogniser. A careful pass is no trial: its failure says little."""
        if (careful and not self._breaker.is_closed) or not self._breaker.admits(self._monotonic()):
            return False
        if self._breaker.on_trial:
            _log.info("recogniser_tried_again")
        return True

    def _on_failure(self, error: RecogniserError, *, counts: bool) -> None:
        if counts:
            self._counted_at = self._monotonic()
            self._breaker.record_failure(self._counted_at, error)
        else:
            self._in_doubt = True
        _log.warning("remote_recogniser_failed", problem=error, failures=self._breaker.failures, counts=counts)
