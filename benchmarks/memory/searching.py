"""What the memory search finds of what left the summary: ours over its real store, and a plain one beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.memory.contenders import our_memory
from benchmarks.memory.finding import look_for
from benchmarks.memory.people import Recall, recall_of
from benchmarks.memory.race import run_course, turns_for
from benchmarks.memory.retrieval import plain_windows
from benchmarks.memory.roomsearch import RoomSearch
from benchmarks.memory.scores import found_scores, recall_scores
from compaction.settings import CompactionSettings
from compaction.summary.extractive import ExtractiveSummariser

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.memory.finding import Found
    from benchmarks.memory.material import Heard
    from benchmarks.memory.race import Checkpoint
    from benchmarks.memory.retrieval import Retriever
    from benchmarks.progress import Progress
    from benchmarks.report import Json
    from compaction.ports import Embedder


async def measure_finding(
    sets: Mapping[str, Sequence[Heard]], embedder: Embedder | None, progress: Progress
) -> dict[str, dict[str, Json]]:
    """Return the figures of each search, by its name: every planted fact is asked for at every checkpoint."""
    figures: dict[str, dict[str, Json]] = {}
    for name, heard in sets.items():
        progress.step(f"search, {name}", total=sum(each.turns for each in heard))
        found: dict[str, dict[int, list[Found]]] = {}
        recalled: dict[str, Recall] = {}
        for each in heard:
            await _search_one(each, embedder, found, recalled, progress)
        for retriever, by_folds in found.items():
            of_set: dict[str, Json] = {str(folds): found_scores(counts) for folds, counts in by_folds.items()}
            if recalled[retriever].questions:
                of_set["people"] = recall_scores(recalled[retriever], searched=True)
            figures.setdefault(retriever, {})[name] = of_set
    return figures


async def _search_one(
    heard: Heard,
    embedder: Embedder | None,
    found: dict[str, dict[int, list[Found]]],
    recalled: dict[str, Recall],
    progress: Progress,
) -> None:
    conversation = heard.conversation
    added = 0
    async with (
        plain_windows() as plain,
        our_memory(ExtractiveSummariser(), CompactionSettings(), started_at=conversation.lines[0].at) as contender,
    ):
        by_words = RoomSearch(contender.database)
        searches: list[Retriever] = [plain, by_words]
        fused = RoomSearch(contender.database, embedder)
        if embedder is not None:
            searches.append(fused)

        async def at(checkpoint: Checkpoint) -> None:
            nonlocal added
            end = turns_for(checkpoint.folds_due)
            await plain.add(conversation.lines[added:end])
            added = end
            await fused.embed_all()
            for search in searches:
                counts = await look_for(conversation, search, checkpoint.folds_due, checkpoint.text)
                found.setdefault(search.name, {}).setdefault(checkpoint.folds_due, []).append(counts)
                if checkpoint.folds_due == heard.folds[-1]:
                    recall = await recall_of(conversation, checkpoint.text, checkpoint.cursor, search)
                    recalled[search.name] = recalled.get(search.name, Recall()) + recall

        await run_course(contender, conversation, heard.folds, progress, on_checkpoint=at)
