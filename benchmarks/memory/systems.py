"""The memory systems that are compared, behind one port: Roomtone's, a bare window, other libraries.

Each gets the same turns, one by one, with a reply requested after each, and keeps about 50 of them word for word. They
differ in the text that stands for all earlier turns; at most 1,200 characters of it are judged.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Protocol

from bot.clock import SystemClock
from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.context.build import build_payload
from compaction.folding.events import FoldFailed, FoldLanded
from compaction.folding.window import BATCH_SIZE, RECENT_WINDOW
from compaction.model import Mode, SessionId, TurnKind, TurnPart
from compaction.session import SessionMemory
from compaction.summary.extractive import ExtractiveSummariser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from benchmarks.memory.conversation import ConversationLine
    from bot.store.database import Database
    from compaction.folding.events import CompactionEvent
    from compaction.model import Turn
    from compaction.settings import CompactionSettings
    from compaction.summary.port import Summariser

# Room for the window and the summary; the budget is judged by smaller ones of its own.
MAX_INPUT_TOKENS = 28_672
_SYSTEM = "You take part in a voice conversation."


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """The state of a system at one moment.

    `injected`: the whole text that represents the turns before the window. `folds`: how often that text was made anew.
    `cursor`: only this text represents the turns before it.
    """

    injected: str
    folds: int
    cursor: int


@dataclass(frozen=True, slots=True)
class StoredSegments:
    """The text stored beside the injected one: all of it, and the part that is marked as still true."""

    everything: str
    holding: str


@dataclass(slots=True)
class FoldCost:
    """The cost of remembering: failures, model calls, tokens, and the seconds of each fold in order."""

    failures: int = 0
    degraded: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    fold_s: list[float] = field(default_factory=list)


class MemorySystem(Protocol):
    """A system that remembers one conversation."""

    async def hear(self, line: ConversationLine) -> None:
        """Add one turn, which gets a reply. Return when every fold that is due has finished."""

    async def standing(self) -> MemorySnapshot:
        """Return the present state."""

    async def stored(self) -> StoredSegments | None:
        """Return what is stored about the turns before the window beside `injected`, or None if nothing ever is."""

    @property
    def cost(self) -> FoldCost:
        """Return the cost so far."""


class ConversationClock:
    """The conversation's own time, plus the real time of the work."""

    def __init__(self, at: float) -> None:
        self._at = at
        self._offset_s = 0.0

    def advance_to(self, at: float) -> None:
        """Advance the conversation's time, and with it the backoff of failed folds."""
        self._offset_s += max(0.0, at - self._at)
        self._at = max(self._at, at)

    def now(self) -> float:
        return self._at

    def monotonic(self) -> float:
        return time.monotonic() + self._offset_s


class RoomtoneMemory:
    """Roomtone's own memory over its real store. Made by `open_roomtone_memory`."""

    def __init__(self, memory: SessionMemory, clock: ConversationClock, cost: FoldCost, database: Database) -> None:
        self.database = database
        self._memory = memory
        self._clock = clock
        self._cost = cost
        self.turn: Turn | None = None

    @property
    def cost(self) -> FoldCost:
        """Return what it took so far."""
        return self._cost

    @property
    def memory(self) -> SessionMemory:
        """Return the memory itself, for what is measured of it alone."""
        return self._memory

    async def hear(self, line: ConversationLine) -> None:
        """Take in one turn, ask for context, and wait for the fold."""
        self._clock.advance_to(line.at)
        self.turn = await add_turn(self._memory, line)
        self._memory.context(current=self.turn, max_input_tokens=MAX_INPUT_TOKENS)
        await self._memory.settle()

    async def standing(self) -> MemorySnapshot:
        """Return the summary, and how far it goes."""
        summary = self._memory.summary
        return MemorySnapshot("" if summary is None else summary.text, len(self._memory.segments), self._memory.cursor)

    async def stored(self) -> StoredSegments:
        """Return the facts and gists of all segments, and the facts that nothing replaced."""
        segments = self._memory.segments
        facts = [(f"{segment.id}#{index}", fact) for segment in segments for index, fact in enumerate(segment.facts)]
        replaced = {ref for _, fact in facts for ref in fact.supersedes}
        return StoredSegments(
            everything="\n".join(
                [*(fact.attributed_text for _, fact in facts), *(segment.gist for segment in segments)]
            ),
            holding="\n".join(fact.attributed_text for ref, fact in facts if ref not in replaced),
        )


@asynccontextmanager
async def open_roomtone_memory(
    summariser: Summariser,
    settings: CompactionSettings,
    *,
    started_at: float,
    mode: Mode = Mode.SUMMARY,
    on_event: Callable[[CompactionEvent], None] | None = None,
) -> AsyncIterator[RoomtoneMemory]:
    """Open a memory in a temporary database, and throw both away at the end."""
    cost = FoldCost()

    def observe(event: CompactionEvent) -> None:
        if isinstance(event, FoldFailed):
            cost.failures += 1
        elif isinstance(event, FoldLanded):
            cost.degraded += event.degraded
            cost.prompt_tokens += event.prompt_tokens or 0
            cost.completion_tokens += event.completion_tokens or 0
            cost.fold_s.append(event.latency_ms / 1000)
        if on_event is not None:
            on_event(event)

    clock = ConversationClock(started_at)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-bench-"))
        database = await stack.enter_async_context(open_database(Path(folder) / "bench.db", synchronous="normal"))
        memory = await stack.enter_async_context(
            SessionMemory.open(
                SessionId("bench"),
                store=SqlTurnStore(database, SystemClock()),
                summariser=summariser,
                fallback=ExtractiveSummariser(),
                settings=settings,
                mode=mode,
                clock=clock,
                rng=Random(0),  # noqa: S311 - jitter and names of runs come out the same
                on_event=observe,
            )
        )
        yield RoomtoneMemory(memory, clock, cost, database)


async def add_turn(memory: SessionMemory, line: ConversationLine) -> Turn:
    kind = TurnKind.ASSISTANT if line.by_bot else TurnKind.SPEECH
    part = TurnPart("assistant" if line.by_bot else line.speaker.casefold(), line.speaker, line.text)
    return await memory.append(kind, (part,), started_at=line.at, ended_at=line.at)


class LastTurnsBaseline:
    """Nothing but the last 50 turns, as spec 1 found it: what is older is gone."""

    def __init__(self) -> None:
        self._lines: list[ConversationLine] = []
        self._cost = FoldCost()

    @property
    def cost(self) -> FoldCost:
        """Return what it took: nothing."""
        return self._cost

    async def hear(self, line: ConversationLine) -> None:
        """Take in one turn."""
        self._lines.append(line)

    async def standing(self) -> MemorySnapshot:
        """Return the window, which has to speak for all that was before it; `folds` are those that others made."""
        folds = max(0, (len(self._lines) - RECENT_WINDOW - 1) // BATCH_SIZE)
        window = "\n".join(f"{line.speaker}: {line.text}" for line in self._lines[-RECENT_WINDOW:])
        return MemorySnapshot(window, folds, folds * BATCH_SIZE)

    async def stored(self) -> None:
        """Return None: nothing is kept."""


def payload_tokens(memory: RoomtoneMemory, *, max_input_tokens: int) -> int:
    """Return what a payload under this budget costs. Raises ContextOverflowError when nothing fits."""
    context = memory.memory.context(current=memory.turn, max_input_tokens=max_input_tokens)
    return sum(part.tokens for part in build_payload(context, system=[_SYSTEM]))


def format_line(line: ConversationLine) -> str:
    """Return a line as every contender's model is shown it: clock time, speaker, words."""
    return f"[{datetime.fromtimestamp(line.at, UTC):%H:%M}] {line.speaker}: {line.text}"
