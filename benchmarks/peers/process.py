"""Runs another library in its own process and talks to it over standard input and output.

The other end is `peer_server`, which documents the messages.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from benchmarks.errors import PeerError
from benchmarks.memory.systems import FoldCost, MemorySnapshot, format_line
from benchmarks.peers.environment import FOLDER
from compaction.folding.window import BATCH_SIZE, RECENT_WINDOW
from compaction.summary.port import MAX_SUMMARY_CHARS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from benchmarks.local_model import ChatEndpoint
    from benchmarks.memory.conversation import ConversationLine
    from benchmarks.peers.environment import PeerLibrary
    from benchmarks.report import Json

# Enough for a fold by a slow local model, including several attempts.
ANSWER_TIMEOUT_S = 2_000.0
_STOP_TIMEOUT_S = 20.0
# If `hear` took longer than this, it waited for a model and not only for the pipe.
_FOLD_LEAST_S = 0.2


class PeerProcess:
    """Another library that remembers one conversation (a `MemorySystem`). Created by `peer_process`."""

    def __init__(self, library: PeerLibrary, process: asyncio.subprocess.Process) -> None:
        self._library = library
        self._process = process
        self._cost = FoldCost()
        self._heard = 0
        self.version = ""

    async def open(self, endpoint: ChatEndpoint) -> None:
        """Start the conversation. Raises PeerError."""
        answer = await self._ask(
            op="open",
            base_url=endpoint.base_url,
            model=endpoint.model,
            api_key=endpoint.api_key,
            max_chars=MAX_SUMMARY_CHARS,
            recent=RECENT_WINDOW,
            batch=BATCH_SIZE,
        )
        self.version = str(answer["version"])

    @property
    def cost(self) -> FoldCost:
        """Return the cost so far. Fold times are the waits that the library imposes on a reply."""
        return self._cost

    async def hear(self, line: ConversationLine) -> None:
        """Add one turn, and return when every fold that is due has finished. Raises PeerError."""
        started = time.monotonic()
        await self._ask(op="hear", text=format_line(line), by_bot=line.by_bot)
        self._heard += 1
        took_s = time.monotonic() - started
        if took_s > _FOLD_LEAST_S:
            self._cost.fold_s.append(took_s)

    async def standing(self) -> MemorySnapshot:
        """Return the summary and the number of turns it covers. Raises PeerError."""
        answer = await self._ask(op="standing")
        folds, failures, messages = (_integer(answer, name) for name in ("folds", "failures", "messages"))
        self._cost.failures = failures
        verbatim = messages - (folds > 0)
        return MemorySnapshot(str(answer["summary"]), folds, max(0, self._heard - verbatim))

    async def stored(self) -> None:
        """Return None, because the libraries do not store summarised turns."""

    async def barge_in(self, lines: Sequence[ConversationLine], *, turn_s: float) -> dict[str, Json]:
        """Interrupt every reply. Return how many folds were requested and applied, and how many turns the summary is
        behind.
        """
        turns = [{"text": format_line(line), "by_bot": line.by_bot} for line in lines]
        answer = await self._ask(op="barge_in", turns=turns, turn_s=turn_s)
        return {name: _integer(answer, name) for name in ("asked", "applied", "behind")}

    async def _ask(self, **request: object) -> dict[str, object]:
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


def _integer(answer: dict[str, object], name: str) -> int:
    value = answer[name]
    assert isinstance(value, int)
    return value


@asynccontextmanager
async def peer_process(library: PeerLibrary, python: Path, endpoint: ChatEndpoint) -> AsyncIterator[PeerProcess]:
    """Run another library for one conversation. Raises PeerError if it does not start."""
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
        peer = PeerProcess(library, process)
        await peer.open(endpoint)
        yield peer
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
