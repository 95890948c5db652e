"""Sends audio in real time: when each 20 ms frame is due, and how late it was sent."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# A frame that is sent later than this is heard as jitter.
LATE_S = 0.01


class Pacer:
    """Waits for each frame's own deadline, so that a late frame does not delay the next frame.

    Use one pacer for each talkspurt. *Cancellation*: a wait can be cancelled. The pacer stays usable.
    """

    def __init__(
        self,
        frame_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Start now, so that frame 0 is due at once."""
        self._frame_s = frame_s
        self._clock = clock
        self._sleep = sleep
        self.started_at = clock()
        self.late_frames = 0
        self.worst_late_s = 0.0

    async def until(self, index: int) -> float:
        """Wait until frame `index` is due. Return the time at which the frame is sent."""
        due = self.started_at + index * self._frame_s
        # Even a late frame yields once to the event loop, so that a burst after a stall does not block other tasks.
        await self._sleep(max(0.0, due - self._clock()))
        now = self._clock()
        late = now - due
        if late > LATE_S:
            self.late_frames += 1
        self.worst_late_s = max(self.worst_late_s, late)
        return now
