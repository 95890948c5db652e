"""Measure folding while every reply is interrupted as soon as it begins, for a whole evening.

A summary takes as long as several turns. The figures are how many folds were requested and applied, and how far the
summary is behind at the end.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.memory.systems.memory_system import MAX_INPUT_TOKENS, add_turn, open_roomtone_memory
from compaction.context.build import build_payload
from compaction.folding.events import FoldLanded, FoldStarted
from compaction.folding.window import BATCH_SIZE, RECENT_WINDOW
from compaction.summary.extractive import ExtractiveSummariser, extract_chapter

if TYPE_CHECKING:
    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.progress import Progress
    from compaction.folding.events import CompactionEvent
    from compaction.settings import CompactionSettings
    from compaction.summary.port import ChapterFold, ChapterRequest, Fold, FoldRequest

# Five interruptions happen during each summary. In reality both times are about a hundred times longer.
TURN_S = 0.05
SUMMARY_S = 0.25
# Seconds to wait for the folds that are still running at the end.
SETTLE_S = 30.0


@dataclass(frozen=True, slots=True)
class BargeInResult:
    """The result. `behind`: turns that are neither in the window nor in the summary at the end."""

    turns: int
    asked: int
    applied: int
    behind: int


class _SlowSummariser:
    """The extractive summariser, made as slow as a language model."""

    def __init__(self) -> None:
        self._summariser = ExtractiveSummariser()

    @property
    def name(self) -> str:
        return "slow"

    @property
    def model(self) -> str:
        return ""

    async def fold_chapter(self, request: ChapterRequest) -> ChapterFold:
        """Return the chapter that the extractive summariser makes."""
        return extract_chapter(request)

    async def fold(self, request: FoldRequest) -> Fold:
        await asyncio.sleep(SUMMARY_S)
        return await self._summariser.fold(request)


async def measure_barge_in(
    conversation: RecordedConversation, settings: CompactionSettings, progress: Progress
) -> BargeInResult:
    """Play a conversation in which somebody interrupts every reply."""
    asked = applied = 0

    def observe(event: CompactionEvent) -> None:
        nonlocal asked, applied
        asked += isinstance(event, FoldStarted)
        applied += isinstance(event, FoldLanded)

    lines = conversation.lines
    async with open_roomtone_memory(_SlowSummariser(), settings, started_at=lines[0].at, on_event=observe) as contender:
        memory = contender.memory

        async def reply() -> None:
            build_payload(memory.context(current=contender.turn, max_input_tokens=MAX_INPUT_TOKENS))
            # This stands for a model's reply, which is always interrupted before it ends.
            await asyncio.sleep(SETTLE_S)

        for line in lines:
            contender.turn = await add_turn(memory, line)
            task = asyncio.create_task(reply(), name="reply that is talked over")
            await asyncio.sleep(TURN_S)
            task.cancel()
            await asyncio.wait({task})
            progress.advance()
        async with asyncio.timeout(SETTLE_S):
            await memory.settle()
        behind = max(0, memory.total_turns - memory.cursor - RECENT_WINDOW - BATCH_SIZE)
        return BargeInResult(len(lines), asked, applied, behind)
