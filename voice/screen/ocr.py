"""Reads the text on screens by OCR, without a language model.

The model runs in a process of its own (`picture_worker`). If a picture makes it hang or crash, only that process ends,
and the event loop goes on. The process starts with the first picture. After each picture it pauses in proportion to
the time that reading took, so a constantly moving game costs a share of a core instead of a whole core.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import structlog

from voice.circuit_breaker import CircuitBreaker
from voice.screen.frame_diff import Box
from voice.screen.ocr_text import OcrLine, clean_lines
from voice.screen.port import LatestRequest, NoPictureError, VisionError, VisionReading, VisionSource
from voice.screen.worker_process import READ_TEXT, REASON_CHARS, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from voice.clock import AsyncClock

log = structlog.get_logger()

# Loading the model takes a second, or several on a busy machine.
START_TIMEOUT_S: Final = 40.0
# A full screen takes half a second on an idle core. If it takes more than ten times as long, the process hangs.
READ_TIMEOUT_S: Final = 8.0
# The share of one core that reading may use while pictures keep changing.
BUSY_SHARE: Final = 0.3
# After this many failures in a row, reading is not tried again for this many seconds.
_MOST_FAILURES: Final = 3
_REST_AFTER_FAILURES_S: Final = 60.0


class OcrReader(WorkerProcess):
    """Reads text. It reads one picture at a time, in the order of the requests.
    `command`: the program that reads.
    """

    def __init__(
        self,
        *,
        command: Sequence[str] = READ_TEXT,
        timeout_s: float = READ_TIMEOUT_S,
        start_timeout_s: float = START_TIMEOUT_S,
        busy_share: float = BUSY_SHARE,
        clock: AsyncClock,
    ) -> None:
        super().__init__(command, start_timeout_s=start_timeout_s, timeout_s=timeout_s)
        self._rest_factor = 1 / busy_share - 1
        self._clock = clock
        self._turn = asyncio.Lock()
        self._rested_at = float("-inf")
        self._breaker = CircuitBreaker(failure_threshold=_MOST_FAILURES, open_s=_REST_AFTER_FAILURES_S)
        # CPU seconds of all readings so far.
        self.cpu_s = 0.0

    async def read(self, latest: LatestRequest, *, urgent: bool = False) -> VisionReading:
        """Return what is on the screen. Raises `VisionError`. An urgent reading skips the pause after earlier readings,
        but waits for its turn.

        *Cancellation*: takes effect at once; the answer is dropped.
        """
        while True:
            if not urgent:
                # Pause before taking a turn, so that an urgent reading need not wait for the pause.
                await self._clock.sleep(max(0.0, self._rested_at - self._clock.monotonic()))
            async with self._turn:
                # If another call has read meanwhile, the pause after that reading applies too.
                if urgent or self._clock.monotonic() >= self._rested_at:
                    return await self._read_now(latest)

    async def _read_now(self, latest: LatestRequest) -> VisionReading:
        if not self._breaker.admits(self._clock.monotonic()):
            raise VisionError(
                "I could not read screens several times. I try again in a minute. {why}",
                why=self._breaker.problem,
            )
        try:
            answer = await self._read(latest)
        except (NoPictureError, asyncio.CancelledError):
            # Neither tells whether reading works again.
            self._breaker.abandon_trial(self._clock.monotonic())
            raise
        except VisionError as error:
            # A copy, because the traceback of what was raised refers to the picture.
            self._breaker.record_failure(self._clock.monotonic(), VisionError(error.template, **error.values))
            raise
        self._breaker.record_success()
        # Use the process's own CPU time, because on a busy machine most of the elapsed time belongs to other programs.
        cpu_s = _cpu_s(answer)
        self.cpu_s += cpu_s
        self._rested_at = self._clock.monotonic() + cpu_s * self._rest_factor
        return VisionReading(VisionSource.OCR, _lines(answer))

    async def _read(self, latest: LatestRequest) -> dict[str, Any]:
        if not self.running:
            began_at = self._clock.monotonic()
            await self.start()
            log.info("screen_reader_started", took_ms=round(1000 * (self._clock.monotonic() - began_at)))
        look = latest()
        boxes = [(box.left, box.top, box.right, box.bottom) for box in look.boxes]
        answer = await self.ask(boxes, look.jpeg)
        if "error" in answer:
            raise VisionError("I could not read the screen ({error}).", error=str(answer["error"])[:REASON_CHARS])
        return answer


# A hostile picture may control the process, so its answers may hold anything.


def _cpu_s(answer: dict[str, Any]) -> float:
    """Return the CPU seconds that the process reports for an answer, limited to the timeout."""
    cpu_s = answer.get("cpu_s")
    # Limited before it becomes a float, which has no room for every whole number. In this order NaN becomes 0; a pause
    # of NaN seconds would never be over.
    return float(min(max(0.0, cpu_s), READ_TIMEOUT_S)) if isinstance(cpu_s, int | float) else 0.0


def _lines(answer: dict[str, Any]) -> tuple[OcrLine, ...]:
    """Return the lines of an answer. Malformed lines are skipped."""
    found = answer.get("lines")
    lines: list[OcrLine] = []
    for each in found if isinstance(found, list) else ():
        try:
            text, *sides, score = each
            left, top, right, bottom = (min(1.0, max(0.0, float(side))) for side in sides)
            lines.append(OcrLine(str(text), Box(left, top, right, bottom), float(score)))
        except (TypeError, ValueError, OverflowError):
            continue
    return clean_lines(lines)
