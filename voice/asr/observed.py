"""A recogniser elsewhere whose requests are counted: what became of each, and how long that took."""

from __future__ import annotations

import asyncio
import time
from enum import StrEnum
from typing import TYPE_CHECKING

from voice.errors import (
    RecogniserError,
    RecogniserLateError,
    RecogniserOverloadedError,
    RecogniserUnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.asr.port import Recogniser, Recognition
    from voice.audio import Pcm


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
    # Not asked, because it kept failing (`voice.asr.fallback`).
    SKIPPED = "skipped"


class ObservedRecogniser:
    """Calls `recogniser` (`voice.asr.port.Recogniser`). `observe`: gets what became of each request, and how many
    seconds that took.
    """

    def __init__(
        self,
        recogniser: Recogniser,
        observe: Callable[[RemoteOutcome, float], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recogniser = recogniser
        self._observe = observe
        self._monotonic = monotonic

    async def recognise(
        self,
        pcm: Pcm,
        *,
        language: str | None = None,
        glossary: tuple[str, ...] = (),
        speaker_id: int | None = None,
        interim: bool = False,
        careful: bool = False,
    ) -> Recognition:
        """See `Recogniser.recognise`."""
        asked_at = self._monotonic()
        try:
            heard = await self._recogniser.recognise(
                pcm, language=language, glossary=glossary, speaker_id=speaker_id, interim=interim, careful=careful
            )
        except (RecogniserError, asyncio.CancelledError) as error:
            self._observe(_outcome_of(error), self._monotonic() - asked_at)
            raise
        self._observe(RemoteOutcome.COMPLETED, self._monotonic() - asked_at)
        return heard

    def confirm(self, speaker_id: int) -> None:
        self._recogniser.confirm(speaker_id)


def _outcome_of(error: RecogniserError | asyncio.CancelledError) -> RemoteOutcome:
    match error:
        case asyncio.CancelledError():
            return RemoteOutcome.CANCELLED
        case RecogniserOverloadedError():
            return RemoteOutcome.SHED
        case RecogniserUnreachableError():
            return RemoteOutcome.UNREACHABLE
        case RecogniserLateError():
            return RemoteOutcome.TIMED_OUT
        case _:
            return RemoteOutcome.FAILED
