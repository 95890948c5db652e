"""Starts, asks and kills the process that decodes or reads pictures (`voice.screen.picture_worker`).

Pictures may be hostile, so they are decoded in a process that has no tokens and keys. If a picture makes it hang or
crash, only that process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import structlog

from voice.screen.port import VisionError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

log = structlog.get_logger()

_STOP_TIMEOUT_S: Final = 2.0
# Enough for 200 lines of 220 characters, or for a small grey picture.
_MAX_ANSWER_BYTES: Final = 1_000_000
# What people are told of an error: the name of its class.
REASON_CHARS: Final = 40
# The lengths of a request's two parts, and that of an answer.
_LENGTHS: Final = struct.Struct(">II")
_LENGTH: Final = struct.Struct(">I")
_PROGRAM: Final = (sys.executable, "-P", str(Path(__file__).with_name("picture_worker.py")))
READ_TEXT: Final = (*_PROGRAM, "text")
DECODE: Final = (*_PROGRAM, "luma")
# The environment variables that the process gets: no tokens and keys.
_ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")
MISSING: Final = (
    "I need the part 'screen' to read screens. Install Roomtone with this part, or set a vision model (screen.model)."
)


class WorkerProcess:
    """One process, started by `start` and replaced after it died. `command`: the program. `timeout_s`: the longest wait
    for an answer.

    *Ownership*: an async context manager. It owns the process and kills it on exit, when it hangs, and when a call is
    cancelled. One call at a time.
    """

    def __init__(self, command: Sequence[str], *, start_timeout_s: float, timeout_s: float) -> None:
        self._command = command
        self._start_timeout_s = start_timeout_s
        self._timeout_s = timeout_s
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.kill()

    @property
    def running(self) -> bool:
        """Return whether the process is running."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start the process unless it runs. Raises `VisionError` if it does not start, or cannot work here."""
        if self.running:
            return
        await self.kill()
        try:
            process = self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ} | {"OMP_NUM_THREADS": "1"},
            )
            async with asyncio.timeout(self._start_timeout_s):
                message = await _answer(process)
            if message.get("ready") is not True:
                raise _unable(str(message.get("error")))
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            await self.kill()
            raise VisionError("I could not start the part of me that reads screens.") from error
        except BaseException:
            await self.kill()
            raise

    async def ask(self, boxes: Sequence[tuple[float, ...]], picture: bytes) -> dict[str, Any]:
        """Send a request and return the answer. `boxes`: the areas to read. Raises `VisionError`.

        *Cancellation* kills the process, because a late answer would be mistaken for the next one.
        """
        process = self._process
        assert process is not None, "start comes first"
        assert process.stdin is not None, "started with pipes"
        header = json.dumps({"boxes": boxes}).encode()
        answer: dict[str, Any] | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                process.stdin.write(_LENGTHS.pack(len(header), len(picture)) + header + picture)
                await process.stdin.drain()
                answer = await _answer(process)
        except TimeoutError as error:
            log.warning("picture_process_hung", command=self._command[-1], timeout_s=self._timeout_s)
            raise VisionError("I needed too long to read the screen, so I stopped and start again.") from error
        except (OSError, EOFError, ValueError) as error:
            raise VisionError("The part of me that reads screens stopped, so I have started it again.") from error
        finally:
            if answer is None:
                await self.kill()
        return answer

    async def kill(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        # A killed process ends within milliseconds, unless the machine is stalled.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await asyncio.shield(process.wait())
        if process.stdin is not None:
            process.stdin.close()


def _unable(reason: str) -> VisionError:
    """Return why the process cannot work. `reason`: the class of the error that it told."""
    if reason in ("ImportError", "ModuleNotFoundError"):
        return VisionError(MISSING)
    return VisionError("I could not load the part of me that reads screens ({error}).", error=reason[:REASON_CHARS])


async def _answer(process: asyncio.subprocess.Process) -> dict[str, Any]:
    """Return the next answer. Raises EOFError (as `IncompleteReadError`) or ValueError if the answer is invalid."""
    assert process.stdout is not None, "started with pipes"
    size = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))[0]
    if size > _MAX_ANSWER_BYTES:
        raise ValueError("an answer without end")
    try:
        message = json.loads(await process.stdout.readexactly(size))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(message, dict):
        raise ValueError("no answer")  # noqa: TRY004 - the same trouble as any other that is no answer
    return message
