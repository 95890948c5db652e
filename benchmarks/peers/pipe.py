"""Runs another library in its own process and asks it over standard input and output.

The other end is `peer_server`, which documents the messages.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from benchmarks.errors import PeerError
from benchmarks.peers.environment import FOLDER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from benchmarks.peers.environment import PeerLibrary

# Enough for a fold by a slow local model, including several attempts.
ANSWER_TIMEOUT_S = 2_000.0
_STOP_TIMEOUT_S = 20.0


class PeerPipe:
    """A running library. Created by `peer_pipe`. `version`: the library's name and version, known after `open`."""

    def __init__(self, library: PeerLibrary, process: asyncio.subprocess.Process) -> None:
        self._library = library
        self._process = process
        self.version = ""

    async def open(self, **request: object) -> None:
        """Start what the requests after this one are about. Raises PeerError."""
        self.version = str((await self.ask(op="open", **request))["version"])

    async def ask(self, **request: object) -> dict[str, object]:
        """Return the answer to one request. Raises PeerError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write((json.dumps(request) + "\n").encode())
            await self._process.stdin.drain()
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                line = await self._process.stdout.readline()
            answer = json.loads(line)
        except (OSError, TimeoutError, ValueError) as error:
            raise PeerError(f"{self._library.name} stopped answering ({type(error).__name__}).") from error
        if "error" in answer:
            raise PeerError(f"{self._library.name} failed: {answer['error']}")
        assert isinstance(answer, dict)
        return answer


@asynccontextmanager
async def peer_pipe(library: PeerLibrary, python: Path) -> AsyncIterator[PeerPipe]:
    """Run another library until the `async with` block ends."""
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(FOLDER / "peer_server.py"),
        library.module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        # The limit is large, because the barge-in measurement sends a whole conversation in one line.
        limit=1 << 24,
    )
    try:
        yield PeerPipe(library, process)
    finally:
        await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(_STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
