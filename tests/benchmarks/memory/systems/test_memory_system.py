"""The memory systems behind one interface."""

from __future__ import annotations

import pytest

from benchmarks.memory.conversations.conversation import ConversationLine
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.systems.memory_system import (
    ConversationClock,
    LastTurnsBaseline,
    format_line,
    open_roomtone_memory,
    payload_tokens,
)
from compaction.settings import CompactionSettings
from compaction.summary.extractive import ExtractiveSummariser


def test_clock_passes_as_the_conversation_does() -> None:
    """The clock follows the transcript's times, so a pause of a minute is a minute for every backoff."""
    clock = ConversationClock(1_000.0)
    before = clock.monotonic()
    clock.advance_to(1_060.0)
    clock.advance_to(1_030.0)
    assert clock.now() == 1_060.0
    assert clock.monotonic() - before >= 60.0


def test_line_is_shown_with_time_and_speaker() -> None:
    """A line is shown with its time and speaker, as every model gets it."""
    assert format_line(ConversationLine("Ada", "Hello.", 3_661.0)) == "[01:01] Ada: Hello."


@pytest.mark.asyncio
async def test_bare_window_holds_fifty_turns() -> None:
    """The baseline keeps the last fifty turns, and counts the folds that other systems make meanwhile."""
    window = LastTurnsBaseline()
    for number in range(61):
        await window.hear(ConversationLine("Ada", f"Turn {number}.", float(number)))
    snapshot = await window.snapshot()
    assert snapshot.injected.splitlines()[0] == "Ada: Turn 11."
    assert (snapshot.folds, snapshot.cursor) == (1, 10)


@pytest.mark.asyncio
async def test_our_memory_stores_what_it_folds() -> None:
    """Our memory stores facts and gists when it folds, and marks the facts that nothing has replaced."""
    lines = generate_evening(1, TemplateSet.TUNING, lines=75).lines
    async with open_roomtone_memory(ExtractiveSummariser(), CompactionSettings(), started_at=lines[0].at) as memory:
        for line in lines:
            await memory.hear(line)
        stored = await memory.stored()
        assert stored.everything
        assert set(stored.holding.splitlines()) <= set(stored.everything.splitlines())
        assert payload_tokens(memory, max_input_tokens=2_048) <= 2_048
