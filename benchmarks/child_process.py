"""A child process of a benchmark that answers requests: one JSON object a line, in both directions."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

ANSWER_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 30.0
# Encryption groups of 150 members make long lines.
_LINE_BYTES = 1 << 24


class ChildProcess:
    """A running child. Made by `child_process`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self._name = name
        self._process = process

    async def ask(self, op: str, *, timeout_s: float = ANSWER_TIMEOUT_S, **request: object) -> dict[str, Any]:
        """Send a request and return the answer. Raises `BenchmarkError` if there is none or it is an error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write((json.dumps({"op": op, **request}) + "\n").encode())
            async with asyncio.timeout(timeout_s):
                await self._process.stdin.drain()
                answer = json.loads(await self._process.stdout.readline())
        except (OSError, TimeoutError, ValueError) as error:
            raise BenchmarkError(f"The process for {self._name} did not answer ({type(error).__name__}).") from error
        if "error" in answer:
            raise BenchmarkError(f"The process for {self._name} failed: {answer['error']}")
        assert isinstance(answer, dict)
        return answer


@asynccontextmanager
async def child_process(name: str, command: Sequence[str]) -> AsyncIterator[ChildProcess]:
    """Run `command` until the block is left. It gets `{"op": "stop"}` then, and is killed if that does not end it.

    `name`: what the process is for, in messages.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        limit=_LINE_BYTES,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield ChildProcess(name, process)
    finally:
        await _stop(process)


def python_module(name: str) -> tuple[str, ...]:
    """Return the command that runs a module with this Python."""
    return (sys.executable, "-m", name)


async def serve(answers: int, answer: Callable[[dict[str, Any]], Awaitable[Mapping[str, object]]]) -> None:
    """Answer requests on stdin until `stop` or its end, to the file descriptor `answers`. A failure becomes an answer
    with `error`.
    """
    while line := await asyncio.to_thread(sys.stdin.readline):
        request = json.loads(line)
        if request["op"] == "stop":
            return
        try:
            found = await answer(request)
        except Exception as error:  # noqa: BLE001 - whatever breaks is what the other side has to know
            found = {"error": f"{type(error).__name__}: {error}"[:500]}
        os.write(answers, (json.dumps(found) + "\n").encode())


def keep_stdout_for_answers() -> int:
    """Return a file descriptor for the answers. From now on, what libraries print to stdout goes to stderr."""
    channel = os.dup(1)
    os.dup2(2, 1)
    return channel


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    assert process.stdin is not None
    try:
        process.stdin.write(b'{"op": "stop"}\n')
        process.stdin.close()
        async with asyncio.timeout(_STOP_TIMEOUT_S):
            await process.wait()
    except (OSError, TimeoutError):
        process.kill()
        await process.wait()
