"""Read the text on screens by OCR, without a language model.

The model runs in a process of its own (`ocr_worker`): a hang or a crash over a picture ends that process and nothing
else, and it takes no time from the event loop. It is started with the first picture, and rests after each in
proportion to how long that took, so that a game that moves all the time costs a share of a core and not a core.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import structlog

from voice.screen.frame_diff import Box
from voice.screen.ocr_text import OcrLine, clean_lines
from voice.screen.port import NoPictureError, VisionError, VisionReading, VisionSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType

    from voice.screen.port import LatestRequest, VisionRequest

log = structlog.get_logger()

# Loading takes a second, on a busy machine several.
START_TIMEOUT_S: Final = 40.0
# A full screen takes half a second on an idle core; ten times that is a hang, or a machine that is busy with other
# things. Starting anew makes a busy machine busier, so after each failure in a row it has twice as long.
READ_TIMEOUT_S: Final = 8.0
_STOP_TIMEOUT_S: Final = 2.0
# The share of a core's time that reading may take while pictures keep changing.
BUSY_SHARE: Final = 0.3
# After so many failures in a row it is not tried again for so long.
_MOST_FAILURES: Final = 3
_REST_AFTER_FAILURES_S: Final = 60.0
# 200 lines of 300 characters.
_MAX_ANSWER_BYTES: Final = 1_000_000
_LENGTH: Final = struct.Struct(">I")
WORKER: Final = (sys.executable, "-P", str(Path(__file__).with_name("ocr_worker.py")))
# What the process may know of ours: pictures are hostile, so no tokens and keys.
_ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT", "PYTHONPATH")

MISSING: Final = (
    "Reading screens needs the part 'screen'. Install it with `pip install 'roomtone[screen]'`, or name a vision model "
    "(screen.model)."
)


class OcrReader:
    """Character recognition (`voice.screen.port.VisionReader`), one picture at a time, in the order of asking.

    `command`: the program that reads. *Ownership*: an async context manager; it owns the process and kills it on exit,
    on a hang and on a cancelled read.
    """

    def __init__(
        self,
        *,
        command: Sequence[str] = WORKER,
        timeout_s: float = READ_TIMEOUT_S,
        start_timeout_s: float = START_TIMEOUT_S,
        busy_share: float = BUSY_SHARE,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._start_timeout_s = start_timeout_s
        self._rest_factor = 1 / busy_share - 1
        self._monotonic = monotonic
        self._sleep = sleep
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._rested_at = float("-inf")
        self._failures = 0
        self._given_up_until = float("-inf")
        # The processor time of all readings so far.
        self.cpu_s = 0.0
        # Who reads or waits to; and whether nobody shares any more, so that the last of them ends the process.
        self._readers = 0
        self._last_one = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._kill()

    @property
    def running(self) -> bool:
        """Return whether the process is there."""
        return self._process is not None and self._process.returncode is None

    async def read(self, latest: LatestRequest, *, urgent: bool = False) -> VisionReading:
        """See `VisionReader.read`. One that is urgent skips the rest, its own and that of others; not the queue."""
        self._readers += 1
        self._last_one = False
        try:
            return await self._in_turn(latest, urgent=urgent)
        finally:
            self._readers -= 1
            if self._last_one and not self._readers:
                await self._kill()

    async def rest(self) -> None:
        """Nobody shares any more: give the process's memory back, behind who still reads. Waits for nobody.

        The next picture starts another.
        """
        if self._readers:
            self._last_one = True
        else:
            await self._kill()

    async def _in_turn(self, latest: LatestRequest, *, urgent: bool) -> VisionReading:
        while True:
            if not urgent:
                # Not in the queue: somebody may ask meanwhile what is on the screen.
                await self._sleep(max(0.0, self._rested_at - self._monotonic()))
            async with self._turn:
                # Somebody else's reading may have come first; it is rested from, too.
                if urgent or self._monotonic() >= self._rested_at:
                    return await self._read_now(latest)

    async def _read_now(self, latest: LatestRequest) -> VisionReading:
        if self._monotonic() < self._given_up_until:
            raise VisionError("Reading screens failed again and again; it is tried again in a minute.")
        try:
            answer = await self._read(latest)
        except NoPictureError:
            raise
        except VisionError:
            self._failed()
            raise
        self._failures = 0
        # Its own processor time: on a busy machine most of the wait is other people's work.
        cpu_s = _cpu_s(answer)
        self.cpu_s += cpu_s
        self._rested_at = self._monotonic() + cpu_s * self._rest_factor
        return VisionReading(VisionSource.OCR, _lines(answer))

    async def _read(self, latest: LatestRequest) -> dict[str, Any]:
        process = await self._started()
        look = latest()
        answer: dict[str, Any] | None = None
        timeout_s = self._timeout_s * 2**self._failures
        try:
            async with asyncio.timeout(timeout_s):
                answer = await _asked(process, look)
        except TimeoutError as error:
            log.warning("screen_reader_hung", timeout_s=timeout_s)
            raise VisionError("Reading the screen took too long; the reader was started again.") from error
        except (OSError, EOFError, ValueError) as error:
            raise VisionError("The screen reader broke off; it was started again.") from error
        finally:
            # Whatever interrupted it (a hang, a cancellation), its answer would be taken for the next one's.
            if answer is None:
                await self._kill()
        if "error" in answer:
            raise VisionError(f"The screen could not be read ({answer['error']}).")
        return answer

    async def _started(self) -> asyncio.subprocess.Process:
        """Return the process, started and ready. Raises `VisionError`."""
        if self._process is not None and self._process.returncode is None:
            return self._process
        began_at = self._monotonic()
        try:
            process = self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ} | {"OMP_NUM_THREADS": "1"},
            )
            async with asyncio.timeout(self._start_timeout_s):
                told = await _answer(process)
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            await self._kill()
            raise VisionError("The screen reader could not be started.") from error
        except BaseException:
            await self._kill()
            raise
        if told.get("ready") is not True:
            await self._kill()
            missing = told.get("error") == "missing"
            raise VisionError(MISSING if missing else f"The screen reader could not be loaded ({told.get('error')}).")
        log.info("screen_reader_started", took_ms=round(1000 * (self._monotonic() - began_at)))
        return process

    def _failed(self) -> None:
        self._failures += 1
        if self._failures >= _MOST_FAILURES:
            self._failures = 0
            self._given_up_until = self._monotonic() + _REST_AFTER_FAILURES_S

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        # A killed process is gone within milliseconds, unless the machine stands still.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await asyncio.shield(process.wait())
        if process.stdin is not None:
            process.stdin.close()


async def _asked(process: asyncio.subprocess.Process, look: VisionRequest) -> dict[str, Any]:
    assert process.stdin is not None, "started with pipes"
    boxes = [(box.left, box.top, box.right, box.bottom) for box in look.boxes]
    header = json.dumps({"boxes": boxes}).encode()
    process.stdin.write(_LENGTH.pack(len(header)) + header + _LENGTH.pack(len(look.jpeg)) + look.jpeg)
    await process.stdin.drain()
    return await _answer(process)


async def _answer(process: asyncio.subprocess.Process) -> dict[str, Any]:
    """Return the next answer. Raises EOFError (as `IncompleteReadError`) or ValueError when it is none."""
    assert process.stdout is not None, "started with pipes"
    size = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))[0]
    if size > _MAX_ANSWER_BYTES:
        raise ValueError("an answer without end")
    told = json.loads(await process.stdout.readexactly(size))
    if not isinstance(told, dict):
        raise ValueError("no answer")  # noqa: TRY004 - the same trouble as any other that is no answer
    return told


def _cpu_s(answer: dict[str, Any]) -> float:
    """Return how much work an answer was, as its process tells; never more than it may have taken."""
    told = answer.get("cpu_s")
    return min(max(float(told), 0.0), READ_TIMEOUT_S) if isinstance(told, int | float) else 0.0


def _lines(answer: dict[str, Any]) -> tuple[OcrLine, ...]:
    """Return the lines of an answer; the process is as hostile as the picture it read."""
    lines: list[OcrLine] = []
    for each in answer.get("lines", ()):
        try:
            text, *sides, score = each
            left, top, right, bottom = (min(1.0, max(0.0, float(side))) for side in sides)
            lines.append(OcrLine(str(text), Box(left, top, right, bottom), float(score)))
        except (TypeError, ValueError):
            continue
    return clean_lines(lines)
