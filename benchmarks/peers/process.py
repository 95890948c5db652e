"""A peer library at work in a process of its own, asked over its standard input and output.

The other end is `peer_server`, which says what is asked and answered.
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

# A fold by a slow local model, several attempts at it included.
ANSWER_TIMEOUT_S = 2_000.0
_STOP_TIMEOUT_S = 20.0
# A longer wait than this was for a model, not for the pipe.
_FOLD_LEAST_S = 0.2


class PeerProcess:
    """One peer with one conversation. Made by `peer_process`; a `Contender`."""

    def __init__(self, library: PeerLibrary, process: asyncio.subprocess.Process) -> None:
        self._library = library
        self._process = process
        self._cost = FoldCost()
        self._heard = 0
        self.version = ""

    async def open(self, endpoint: ChatEndpoint) -> None:
        """Begin the conversation. Raises PeerError."""
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
        """Return what it took so far; the reply waits for it where the library makes it wait."""
        return self._cost

    async def hear(self, line: ConversationLine) -> None:
        """Take in one turn; return when everything is folded that was due. Raises PeerError."""
        started = time.monotonic()
        await self._ask(op="hear", text=format_line(line), by_bot=line.by_bot)
        self._heard += 1
        took_s = time.monotonic() - started
        if took_s > _FOLD_LEAST_S:
            self._cost.fold_s.append(took_s)

    async def standing(self) -> MemorySnapshot:
        """Return the summary, and how far it goes. Raises PeerError."""
        answer = await self._ask(op="standing")
        folds, failures, messages = (_integer(answer, name) for name in ("folds", "failures", "messages"))
        self._cost.failures = failures
        verbatim = messages - (folds > 0)
        return MemorySnapshot(str(answer["summary"]), folds, max(0, self._heard - verbatim))

    async def stored(self) -> None:
        """Return None: what is summarised is gone."""

    async def barge_in(self, lines: Sequence[ConversationLine], *, turn_s: float) -> dict[str, Json]:
        """Let every reply be talked over; return how many folds were asked, applied, and what is behind."""
        turns = [{"text": format_line(line), "by_bot": line.by_bot} for line in lines]
        answer = await self._ask(op="barge_in", turns=turns, turn_s=turn_s)
        return {name: _integer(answer, name) for name in ("asked", "applied", "behind")}

    async def _ask(self, **request: object) -> dict[str, object]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write((json.dumps(request) + "\n").encode())
            await self._process.stdin.drain()
            line = await asyncio.wait_for(self._process.stdout.readline(), ANSWER_TIMEOUT_S)
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
    """Run a peer for one conversation. Raises PeerError when it doesn't start."""
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(FOLDER / "peer_server.py"),
        library.module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        # A whole conversation is one line when barge-in is measured.
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
        await asyncio.wait_for(process.wait(), _STOP_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
