"""Who takes part: name, side, what it needs, and how it enters a conversation."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.memory.contenders import LastTurns, our_memory
from compaction.settings import CompactionSettings
from compaction.summarisers.extractive import ExtractiveSummariser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from benchmarks.memory.contenders import Contender

# A fold may take its time here: a small model on a busy machine is slow, and that is not what is measured.
MODEL_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Entrant:
    """One contender. `ours`: it is Roomtone's; `claims`: its text is a summary, and can be wrong.

    `enter` is given when the conversation starts, in UTC epoch seconds.
    """

    name: str
    ours: bool
    needs_model: bool
    enter: Callable[[float], AbstractAsyncContextManager[Contender]]
    claims: bool = True


def model_free() -> tuple[Entrant, ...]:
    """Return who needs no language model."""
    return (
        Entrant("extractive", ours=True, needs_model=False, enter=_extractive),
        Entrant("last 50 turns", ours=False, needs_model=False, enter=_last_turns, claims=False),
    )


@asynccontextmanager
async def _extractive(started_at: float) -> AsyncIterator[Contender]:
    async with our_memory(ExtractiveSummariser(), CompactionSettings(), started_at=started_at) as memory:
        yield memory


@asynccontextmanager
async def _last_turns(started_at: float) -> AsyncIterator[Contender]:
    del started_at
    yield LastTurns()
