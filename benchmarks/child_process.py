"""A child process of a benchmark that answers requests: one JSON object a line, in both directions.

What a child can be asked are the public methods of one object, by name and with keyword arguments.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import structlog

from benchmarks.report import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

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
async def child_process(name: str, module: str, *, inside: Sequence[str] = ()) -> AsyncIterator[ChildProcess]:
    """Run a module that calls `answer_requests` until the block is left. It is killed if it does not end then.

    `name`: what the process is for, in messages. `inside`: the command that runs it, as `unshare` does.
    """
    process = await asyncio.create_subprocess_exec(
        *(*inside, sys.executable, "-m", module),
        limit=_LINE_BYTES,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield ChildProcess(name, process)
    finally:
        assert process.stdin is not None
        # The child ends with its input.
        process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def answer_requests(make: Callable[[AsyncExitStack], object]) -> None:
    """Answer requests until the input ends: the whole of a child process.

    `make` returns the object whose methods are asked; its stack closes what they open. A method that fails is answered
    with `error`. What libraries print goes to stderr.
    """
    answers = os.dup(1)
    os.dup2(2, 1)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(_answer_requests(answers, make))


async def _answer_requests(answers: int, make: Callable[[AsyncExitStack], object]) -> None:
    async with AsyncExitStack() as stack:
        asked = make(stack)
        while line := await asyncio.to_thread(sys.stdin.readline):
            request = json.loads(line)
            try:
                found = await getattr(asked, request.pop("op"))(**request)
            except Exception as error:  # noqa: BLE001 - whatever breaks is what the other side has to know
                found = {"error": f"{type(error).__name__}: {error}"[:500]}
            os.write(answers, (json.dumps(found) + "\n").encode())
