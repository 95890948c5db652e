"""Another library that remembers one conversation, in its own process (`benchmarks.peers.pipe`)."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from benchmarks.memory.systems.memory_system import FoldCost, MemorySnapshot, format_line
from benchmarks.peers.pipe import peer_pipe
from compaction.folding.window import BATCH_SIZE, RECENT_WINDOW
from compaction.summary.port import MAX_SUMMARY_CHARS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from benchmarks.local_model import ChatEndpoint
    from benchmarks.memory.conversations.conversation import ConversationLine
    from benchmarks.peers.environment import PeerLibrary
    from benchmarks.peers.pipe import PeerPipe
    from benchmarks.report import Json

# If `hear` took longer than this, it waited for a model and not only for the pipe.
_FOLD_LEAST_S = 0.2


class PeerProcess:
    """Another library that remembers one conversation (a `MemorySystem`). Created by `peer_process`."""

    def __init__(self, pipe: PeerPipe) -> None:
        self._pipe = pipe
        self._cost = FoldCost()
        self._heard = 0

    @property
    def version(self) -> str:
        """The library's name and version."""
        return self._pipe.version

    async def open(self, endpoint: ChatEndpoint) -> None:
        """Start the conversation, with the model of `endpoint` and Roomtone's own window, batch and summary length.

        Call it once, before `hear`. Raises `PeerError`.
        """
        await self._pipe.open(
            base_url=endpoint.base_url,
            model=endpoint.model,
            api_key=endpoint.api_key,
            max_chars=MAX_SUMMARY_CHARS,
            recent=RECENT_WINDOW,
            batch=BATCH_SIZE,
        )

    @property
    def cost(self) -> FoldCost:
        """Return the cost so far. Fold times are the waits that the library imposes on a reply."""
        return self._cost

    async def hear(self, line: ConversationLine) -> None:
        """Add one turn, and return when every fold that is due has finished. Raises PeerError."""
        started = time.monotonic()
        await self._pipe.ask("hear", text=format_line(line), by_bot=line.by_bot)
        self._heard += 1
        took_s = time.monotonic() - started
        if took_s > _FOLD_LEAST_S:
            self._cost.fold_s.append(took_s)

    async def snapshot(self) -> MemorySnapshot:
        """Return the summary and the number of turns it covers. Raises PeerError."""
        answer = await self._pipe.ask("snapshot")
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
        answer = await self._pipe.ask("barge_in", turns=turns, turn_s=turn_s)
        return {name: _integer(answer, name) for name in ("asked", "applied", "behind")}


def _integer(answer: dict[str, object], name: str) -> int:
    value = answer[name]
    assert isinstance(value, int)
    return value


@asynccontextmanager
async def peer_process(library: PeerLibrary, python: Path, endpoint: ChatEndpoint) -> AsyncIterator[PeerProcess]:
    """Run another library for one conversation. Raises PeerError if it does not start."""
    async with peer_pipe(library, python) as pipe:
        peer = PeerProcess(pipe)
        await peer.open(endpoint)
        yield peer
