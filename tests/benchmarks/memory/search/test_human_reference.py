"""Comparing memory with summaries that people wrote."""

from __future__ import annotations

import pytest

from benchmarks.memory.conversations.conversation import (
    ConversationLine,
    HumanSummary,
    RecordedConversation,
    ReferenceQuestion,
)
from benchmarks.memory.search.human_reference import measure_reference_recall
from benchmarks.memory.search.retrieval import plain_windows

LINES = (
    ConversationLine("Ann", "I moved to Oslo in 2019.", 0.0),
    ConversationLine("Ben", "Nice, I have a boat in Bergen.", 1.0),
    ConversationLine("Ann", "I was in Rome once.", 2.0),
)
TALK = RecordedConversation(
    "one",
    "QMSum",
    LINES,
    questions=(
        ReferenceQuestion("Where does Ann live?", "in Oslo", (0,)),
        ReferenceQuestion("Where was Ann?", "Rome", (2,)),
    ),
    summaries=(HumanSummary("People talk: Ann lives in Oslo since 2019 and Ben owns a boat; nobody saw Paris.", 0, 3),),
)


@pytest.mark.asyncio
async def test_entities_of_human_summaries_are_looked_for() -> None:
    """Only entities of the human summary that were said count: Ann, Oslo, 2019 and Ben, but not Paris."""
    recall = await measure_reference_recall(TALK, "Ann lives in Oslo.", 2, None)
    assert (recall.entities, recall.entities_due) == (2, 4)


@pytest.mark.asyncio
async def test_questions_count_once_their_evidence_left() -> None:
    """A question counts once its evidence has left the window. At turn 2 the evidence about Rome has not."""
    async with plain_windows() as search:
        await search.add(LINES)
        recall = await measure_reference_recall(TALK, "Ann moved to Oslo.", 2, search)
        assert (recall.questions, recall.answer_words, recall.evidence_found) == (1, 1.0, 1)
        assert recall.answer_words_found == 1.0


@pytest.mark.asyncio
async def test_nothing_written_means_nothing_due() -> None:
    """Nothing is expected for a made-up conversation, because it has no human summary."""
    recall = await measure_reference_recall(RecordedConversation("one", "made up", LINES), "", 3, None)
    assert (recall.entities_due, recall.questions) == (0, 0)
