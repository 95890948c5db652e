"""Runs another library in its own process and asks it over standard input and output.

The other end is `peer_server`, which documents the messages.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from benchmarks.child_process import PEER_ERRORS, child_process
from benchmarks.peers.environment import FOLDER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from benchmarks.child_process import ChildProcess
    from benchmarks.peers.environment import PeerLibrary

# Enough for a fold by a slow local model, including several attempts.
ANSWER_TIMEOUT_S = 2_000.0


class PeerPipe:
    """A running library. Created by `peer_pipe`. `version`: the library's name and version, known after `open`."""

    def __init__(self, child: ChildProcess) -> None:
        self._child = child
        self.version = ""

    async def open(self, **request: object) -> None:
        """Have the library make what the later requests are about: a memory or a voice pipeline. Call it once.

        `request`: the fields that `peer_server` lists for that kind of peer. Sets `version`. Raises `PeerError` if the
        library cannot be loaded, fails, or does not answer within `ANSWER_TIMEOUT_S`.
        """
        self.version = str((await self.ask("open", **request))["version"])

    async def ask(self, op: str, **request: object) -> dict[str, object]:
        """Return the answer to one request. `op`, `request`: see `peer_server`.

        Raises `PeerError` if the library fails or does not answer within `ANSWER_TIMEOUT_S`.
        """
        return await self._child.ask(op, timeout_s=ANSWER_TIMEOUT_S, **request)


@asynccontextmanager
async def peer_pipe(library: PeerLibrary, python: Path) -> AsyncIterator[PeerPipe]:
    """Run another library until the `async with` block ends."""
    command = (str(python), str(FOLDER / "peer_server.py"), library.module)
    async with child_process(library.name, command, errors=PEER_ERRORS) as child:
        yield PeerPipe(child)
