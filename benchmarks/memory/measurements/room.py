"""Roomtone's own memory over its real store, as the measurements play conversations to it."""

from __future__ import annotations

import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from bot.clock import SystemClock
from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.model import Mode, SessionId, TurnKind, TurnPart
from compaction.session import SessionMemory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from benchmarks.memory.conversations.conversation import ConversationLine
    from bot.store.database import Database
    from compaction.events import CompactionEvent
    from compaction.model import Turn
    from compaction.settings import CompactionSettings
    from compaction.summary.port import Summariser

# The token budget of a payload has room for the window and the summary. `evaluation` also checks smaller budgets.
MAX_INPUT_TOKENS = 28_672


class ConversationClock:
    """A clock that shows the conversation's time plus the real time that the work takes."""

    def __init__(self, at: float) -> None:
        self._at = at
        self._offset_s = 0.0

    def advance_to(self, at: float) -> None:
        """Advance the conversation's time, which also shortens the wait after a failed fold."""
        self._offset_s += max(0.0, at - self._at)
        self._at = max(self._at, at)

    def now(self) -> float:
        return self._at

    def monotonic(self) -> float:
        return time.monotonic() + self._offset_s


class RoomtoneMemory:
    """Roomtone's own memory over its real store. Created by `open_roomtone_memory`."""

    def __init__(self, memory: SessionMemory, clock: ConversationClock, database: Database) -> None:
        self.database = database
        self._memory = memory
        self._clock = clock
        self.turn: Turn | None = None

    @property
    def memory(self) -> SessionMemory:
        """Return the memory itself, for measurements of Roomtone alone."""
        return self._memory

    async def hear(self, line: ConversationLine) -> None:
        """Add one turn, request the context for a reply, and wait for the fold."""
        self._clock.advance_to(line.at)
        self.turn = await add_turn(self._memory, line)
        self._memory.context(current=self.turn, max_input_tokens=MAX_INPUT_TOKENS)
        await self._memory.settle()


@asynccontextmanager
async def open_roomtone_memory(
    summariser: Summariser,
    settings: CompactionSettings,
    *,
    started_at: float,
    mode: Mode = Mode.SUMMARY,
    on_event: Callable[[CompactionEvent], None] | None = None,
) -> AsyncIterator[RoomtoneMemory]:
    """Open a memory in a temporary database, and delete both at the end."""
    clock = ConversationClock(started_at)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-bench-"))
        database = await stack.enter_async_context(open_database(Path(folder) / "bench.db", synchronous="normal"))
        memory = await stack.enter_async_context(
            SessionMemory.open(
                SessionId("bench"),
                store=SqlTurnStore(database, SystemClock()),
                summariser=summariser,
                settings=settings,
                mode=mode,
                clock=clock,
                rng=Random(0),  # noqa: S311 - jitter and names of runs come out the same
                on_event=on_event,
            )
        )
        yield RoomtoneMemory(memory, clock, database)


async def add_turn(memory: SessionMemory, line: ConversationLine) -> Turn:
    kind = TurnKind.ASSISTANT if line.by_bot else TurnKind.SPEECH
    part = TurnPart("assistant" if line.by_bot else line.speaker.casefold(), line.speaker, line.text)
    return await memory.append(kind, (part,), started_at=line.at, ended_at=line.at)
