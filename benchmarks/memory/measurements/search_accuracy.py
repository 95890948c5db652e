"""Measures whether memory search finds facts that left the summary, for Roomtone's search and for a plain one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.memory.conversations.folds import turns_needed
from benchmarks.memory.measurements.evaluation import evaluate
from benchmarks.memory.measurements.scores import found_scores, recall_scores
from benchmarks.memory.search.fact_retrieval import find_facts
from benchmarks.memory.search.human_reference import ReferenceRecall, measure_reference_recall
from benchmarks.memory.search.retrieval import plain_windows
from benchmarks.memory.search.roomtone_search import RoomtoneSearch
from benchmarks.memory.systems.memory_system import open_roomtone_memory
from compaction.settings import CompactionSettings
from compaction.summary.extractive import ExtractiveSummariser

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.memory.measurements.conversation_sets import PlannedConversation
    from benchmarks.memory.measurements.evaluation import Checkpoint
    from benchmarks.memory.search.fact_retrieval import FoundFacts
    from benchmarks.memory.search.retrieval import Retriever
    from benchmarks.progress import Progress
    from benchmarks.report import Json
    from compaction.ports import Embedder


async def measure_search_accuracy(
    sets: Mapping[str, Sequence[PlannedConversation]], embedder: Embedder | None, progress: Progress
) -> dict[str, dict[str, Json]]:
    """Search for every planted fact at every checkpoint, and return the figures of each search by its name."""
    figures: dict[str, dict[str, Json]] = {}
    for name, heard in sets.items():
        progress.step(f"search, {name}", total=sum(each.turns for each in heard))
        found: dict[str, dict[int, list[FoundFacts]]] = {}
        recalled: dict[str, ReferenceRecall] = {}
        for each in heard:
            await _search_one(each, embedder, found, recalled, progress)
        for retriever, by_folds in found.items():
            of_set: dict[str, Json] = {str(folds): found_scores(counts) for folds, counts in by_folds.items()}
            if recalled[retriever].questions:
                of_set["people"] = recall_scores(recalled[retriever], searched=True)
            figures.setdefault(retriever, {})[name] = of_set
    return figures


async def _search_one(
    heard: PlannedConversation,
    embedder: Embedder | None,
    found: dict[str, dict[int, list[FoundFacts]]],
    recalled: dict[str, ReferenceRecall],
    progress: Progress,
) -> None:
    conversation = heard.conversation
    added = 0
    async with (
        plain_windows() as plain,
        open_roomtone_memory(
            ExtractiveSummariser(), CompactionSettings(), started_at=conversation.lines[0].at
        ) as contender,
    ):
        by_words = RoomtoneSearch(contender.database)
        searches: list[Retriever] = [plain, by_words]
        fused = RoomtoneSearch(contender.database, embedder)
        if embedder is not None:
            searches.append(fused)

        async def at(checkpoint: Checkpoint) -> None:
            nonlocal added
            end = turns_needed(checkpoint.folds_due)
            await plain.add(conversation.lines[added:end])
            added = end
            await fused.embed_all()
            for search in searches:
                counts = await find_facts(conversation, search, checkpoint.folds_due, checkpoint.text)
                found.setdefault(search.name, {}).setdefault(checkpoint.folds_due, []).append(counts)
                if checkpoint.folds_due == heard.folds[-1]:
                    recall = await measure_reference_recall(conversation, checkpoint.text, checkpoint.cursor, search)
                    recalled[search.name] = recalled.get(search.name, ReferenceRecall()) + recall

        await evaluate(contender, conversation, heard.folds, progress, on_checkpoint=at)
