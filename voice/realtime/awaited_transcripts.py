"""The transcripts that somebody waits for in a speech-to-speech session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice.errors import RealtimeError
    from voice.realtime.effects import InputTranscribed


class AwaitedTranscripts:
    """The awaited transcripts of one session, by the number of their input. Call everything on one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[InputTranscribed]] = {}

    def add(self, input_id: int) -> None:
        """Expect the transcript of an input from now on."""
        self._waiting[input_id] = asyncio.get_running_loop().create_future()

    async def wait(self, input_id: int, *, within_s: float) -> InputTranscribed:
        """Wait for the transcript of an added input, which is expected no more then. Raises `TimeoutError`, and what
        `fail` was given.
        """
        try:
            async with asyncio.timeout(within_s):
                return await self._waiting[input_id]
        finally:
            self._waiting.pop(input_id, None)

    def resolve(self, found: InputTranscribed) -> None:
        """Pass a transcript on to who waits for it, if anybody still does."""
        waiting = self._waiting.get(found.input_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(found)

    def fail(self, error: RealtimeError) -> None:
        """Let everybody who waits get `error`: no transcript comes any more."""
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)
