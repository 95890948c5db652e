"""The compared memory systems behind one interface: Roomtone's, a bare window, and other libraries.

Each system gets the same turns, one by one, with a reply requested after each turn, and keeps about 50 turns word for
word. The systems differ in the text that stands for all earlier turns. At most 1,200 characters of that text are
judged.
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

    from benchmarks.memory.conversations.conversation import ConversationLine
    from bot.store.database import Database
    from compaction.folding.events import CompactionEvent
    from compaction.model import Turn
    from compaction.settings import CompactionSettings
    from compaction.summary.port import Summariser

# The token budget of a payload has room for the window and the summary. `evaluation` also checks smaller budgets.
MAX_INPUT_TOKENS = 28_672
_SYSTEM = "You take part in a voice conversation."


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """The state of a system at one moment.

    `injected`: the whole text that represents the turns before the window. `folds`: how often that text was rewritten.
    `cursor`: the turns before it are represented only by that text.
    """

    injected: str
    folds: int
    cursor: int


@dataclass(frozen=True, slots=True)
class StoredSegments:
    """The text stored besides the injected one: all of it, and the part that is marked as still true."""

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
        """Add one turn and request a reply to it. Return when every fold that is due has finished."""

    async def snapshot(self) -> MemorySnapshot:
        """Return the current state."""

    async def stored(self) -> StoredSegments | None:
        """Return what is stored about the turns before the window besides `injected`, or None if the system never
        stores any.
        """

    @property
    def cost(self) -> FoldCost:
        """Return the cost so far."""


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

    def __init__(self, memory: SessionMemory, clock: ConversationClock, cost: FoldCost, database: Database) -> None:
        self.database = database
        self._memory = memory
        self._clock = clock
        self._cost = cost
        self.turn: Turn | None = None

    @property
    def cost(self) -> FoldCost:
        """Return the cost so far."""
        return self._cost

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

    async def snapshot(self) -> MemorySnapshot:
        """Return the summary and the number of turns it covers."""
        summary = self._memory.summary
        return MemorySnapshot("" if summary is None else summary.text, len(self._memory.segments), self._memory.cursor)

    async def stored(self) -> StoredSegments:
        """Return the facts and gists of all segments, and the facts that were not replaced."""
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
    """Open a memory in a temporary database, and delete both at the end."""
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
    """A baseline that keeps only the last 50 turns, as the bot did before spec 1. Older turns are lost."""

    def __init__(self) -> None:
        self._lines: list[ConversationLine] = []
        self._cost = FoldCost()

    @property
    def cost(self) -> FoldCost:
        """Return the cost, which is zero."""
        return self._cost

    async def hear(self, line: ConversationLine) -> None:
        """Add one turn."""
        self._lines.append(line)

    async def snapshot(self) -> MemorySnapshot:
        """Return the window as the injected text. `folds`: the number of folds that another system would have made."""
        folds = max(0, (len(self._lines) - RECENT_WINDOW - 1) // BATCH_SIZE)
        window = "\n".join(f"{line.speaker}: {line.text}" for line in self._lines[-RECENT_WINDOW:])
        return MemorySnapshot(window, folds, folds * BATCH_SIZE)

    async def stored(self) -> None:
        """Return None, because nothing is stored."""


def payload_tokens(memory: RoomtoneMemory, *, max_input_tokens: int) -> int:
    """Return how many tokens a payload within this budget has. Raises ContextOverflowError when nothing fits."""
    context = memory.memory.context(current=memory.turn, max_input_tokens=max_input_tokens)
    return sum(part.tokens for part in build_payload(context, system=[_SYSTEM]))


def format_line(line: ConversationLine) -> str:
    """Return a line as every system's model sees it: clock time, speaker, words."""
    return f"[{datetime.fromtimestamp(line.at, UTC):%H:%M}] {line.speaker}: {line.text}"
