"""Evaluating one memory system on one conversation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.memory.conversations.conversation import ConversationLine, RecordedConversation
from benchmarks.memory.conversations.folds import folds_possible, turns_needed
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.measurements.evaluation import evaluate, paragraph_makers
from benchmarks.memory.systems.memory_system import (
    FoldCost,
    LastTurnsBaseline,
    MemorySnapshot,
    StoredSegments,
    open_roomtone_memory,
)
from benchmarks.progress import NoProgress
from compaction.settings import CompactionSettings
from compaction.summary.extractive import ExtractiveSummariser
from tests.compaction.turn_store_contract import segment

EVENING = generate_evening(1, TemplateSet.TUNING, lines=turns_needed(6))


class Fixed:
    """A memory system that always has the same summary."""

    def __init__(self, injected: str, *, cursor: int = 1_000, stored: StoredSegments | None = None) -> None:
        self._standing = MemorySnapshot(injected, 1, cursor)
        self._stored = stored
        self.cost = FoldCost()

    async def hear(self, line: ConversationLine) -> None:
        """Ignore the line."""

    async def snapshot(self) -> MemorySnapshot:
        """Return the fixed snapshot."""
        return self._standing

    async def stored(self) -> StoredSegments | None:
        """Return the fixed segments."""
        return self._stored


def all_told(conversation: RecordedConversation) -> str:
    """Return all lines of a conversation as one text."""
    return "\n".join(f"{line.speaker}: {line.text}" for line in conversation.lines)


@pytest.mark.asyncio
async def test_our_memory_folds_as_often_as_is_due_and_keeps_to_its_budget() -> None:
    """At each checkpoint our memory has made the folds that are due, its summary has at most 1,200 characters, and
    nothing is invented.
    """
    async with open_roomtone_memory(
        ExtractiveSummariser(), CompactionSettings(), started_at=EVENING.lines[0].at
    ) as memory:
        course = await evaluate(memory, EVENING, (3, 6), NoProgress())
    assert [(each.folds_due, each.folds, each.cursor) for each in course.checkpoints] == [(3, 3, 30), (6, 6, 60)]
    assert all(0 < each.raw_chars <= 1_200 for each in course.checkpoints)
    assert (course.overlong, course.unfinished, course.payloads_over_budget) == (0, 0, 0)
    assert course.summaries == 6
    assert not course.invented_names
    assert not course.invented_numbers
    assert course.cost is not None
    assert len(course.cost.fold_s) == 6
    last = course.checkpoints[-1]
    assert last.stored is not None
    assert last.stored.kept >= last.injected.kept


@pytest.mark.asyncio
async def test_bare_window_knows_nothing_of_what_left_it() -> None:
    """A system that keeps only the last turns knows nothing older. It makes no claims, so it has no
    summaries to judge.
    """
    course = await evaluate(LastTurnsBaseline(), EVENING, (6,), NoProgress(), claims=False)
    (checkpoint,) = course.checkpoints
    assert checkpoint.injected.facts > 0
    assert checkpoint.injected.kept == 0
    assert checkpoint.cursor == 60
    assert course.summaries == 0


@pytest.mark.asyncio
async def test_only_what_fits_counts() -> None:
    """Only the first 1,200 characters of a summary are judged, and longer summaries are counted."""
    course = await evaluate(Fixed("…" * 1_300 + all_told(EVENING)), EVENING, (6,), NoProgress())
    assert course.checkpoints[0].injected.kept == 0
    assert course.overlong == 1


@pytest.mark.asyncio
async def test_inventions_and_unfinished_sentences_are_noticed() -> None:
    """A name that nobody said and a summary that breaks off are counted."""
    course = await evaluate(Fixed("They met Zebulon and"), EVENING, (6,), NoProgress())
    assert course.invented_names == {"Zebulon"}
    assert course.unfinished == 1


@pytest.mark.asyncio
async def test_who_is_behind_is_asked_about_less() -> None:
    """A system with an older cursor is asked for fewer facts, because later facts are still in its window word for
    word.
    """
    course = await evaluate(Fixed("", cursor=0), EVENING, (6,), NoProgress())
    assert course.checkpoints[0].injected.facts == 0


@pytest.mark.asyncio
async def test_what_is_stored_is_judged_beside_what_is_injected() -> None:
    """Stored text is judged as well as injected text. Old values count only where nothing marks them as replaced."""
    told = all_told(EVENING)
    course = await evaluate(Fixed("", stored=StoredSegments(told, "")), EVENING, (6,), NoProgress())
    stored = course.checkpoints[0].stored
    assert stored is not None
    assert stored.kept == stored.facts > 0
    assert stored.stale == 0


def test_length_and_folds_agree() -> None:
    """A conversation that is made for n folds is long enough for n folds and not for one more."""
    for folds in (1, 5, 20):
        made = RecordedConversation(
            "one", "made up", tuple(ConversationLine("Ada", "…", 0.0) for _ in range(turns_needed(folds)))
        )
        assert folds_possible(made) == folds
    assert folds_possible(RecordedConversation("none", "made up", ())) == 0


@pytest.mark.parametrize(
    ("summariser", "paragraph", "problem", "degraded", "maker"),
    [
        ("llm ledger.v8", "They talked.", "", False, "model"),
        ("llm recursive.v6", "They talked.", "", False, "model"),
        ("llm ledger.v8", "", "Too long.", False, "Too long."),
        # Code has chosen the facts because the model only repeated turns.
        ("extractive", "", "Copied.", False, "Copied."),
        ("extractive", "", "", True, "the model failed"),
        # Made again by the model after that.
        ("llm ledger.v8", "", "", False, "the model failed"),
        ("extractive recursive", "They talked.", "", True, "the model failed"),
        ("extractive recursive", "They talked.", "", False, "no model"),
        ("extractive", "", "", False, "no model"),
    ],
)
def test_who_made_the_paragraph_of_a_fold(
    summariser: str, paragraph: str, problem: str, degraded: bool, maker: str
) -> None:
    """Code makes a paragraph too where a model fails under `recursive`: it is not the model's."""
    made = replace(
        segment(0, 10), summariser=summariser, paragraph=paragraph, paragraph_problem=problem, degraded=degraded
    )
    assert paragraph_makers([made]) == {maker: 1}
