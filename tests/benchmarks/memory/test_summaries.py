"""Recorded answers are asked for once, and the final text is judged by the facts that hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.memory.summaries import WRITTEN, RecordedAnswers, answers_file, facts_due, fold_written
from bot.memory.admin import MemoryAdmin
from bot.memory.recall import Recall
from bot.memory.replay import SESSION
from bot.store.database import open_database
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.turns import SqlTurnStore
from compaction.errors import CompletionError
from compaction.memory.passage import PassageKind, Scope
from compaction.ports import CompletionAnswer, CompletionRequest
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.llm import LlmSummariser
from tests.docs.pages import text_of
from tests.fakes.clock import FakeClock


class Writer:
    """A model that writes a summary of its own for each request."""

    model = "writer"
    asked = 0

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return the number of the request as the summary."""
        self.asked += 1
        return CompletionAnswer(json.dumps({"gist": "G.", "paragraph": f"Fold {self.asked}."}), "stop", None, None)


async def test_a_conversation_is_folded_again_from_its_kept_answers(tmp_path: Path) -> None:
    """Nobody is asked twice, and a request that nobody has answered is none of the kept ones."""
    kept, writer = tmp_path / "answers" / "cabin.json", Writer()
    first = await fold_written("cabin", LlmSummariser(RecordedAnswers(kept, writer)))
    again = await fold_written("cabin", LlmSummariser(RecordedAnswers(kept)))
    assert (first.summary, first.cursor, writer.asked) == ("Fold 26.", 260, 26)
    assert (again.summary, again.failed) == (first.summary, ())
    with pytest.raises(CompletionError):
        await RecordedAnswers(kept).complete(CompletionRequest("", "Another one.", 100))


async def found_in_archive(recall: Recall, facts: dict[int, str]) -> int:
    """Return of how many facts an archived segment that has their turn is among the first three found."""
    scope = Scope(kinds=frozenset({PassageKind.SEGMENT}), archived=True)
    found = [(turn, await recall.search(fact, scope, limit=3)) for turn, fact in facts.items()]
    return sum(
        any(each.seq_from // 10 == turn // 10 for each in hits if each.seq_from is not None) for turn, hits in found
    )


@pytest.mark.covers("3.8")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("answered", "page_says", "least"), [(True, "with a model", 0.9), (False, "without one", 0.75)]
)
async def test_records_are_as_much_shorter_as_the_page_says(
    tmp_path: Path, answered: bool, page_says: str, least: float
) -> None:
    """Whole records of the written conversations, of what their turns take in a prompt. The labelled facts are found in
    the archive, and still when it is pruned.
    """
    saved: list[float] = []
    due = found = found_pruned = 0
    for name in WRITTEN:
        model = LlmSummariser(RecordedAnswers(answers_file(name)))
        async with open_database(tmp_path / f"{name}.db", synchronous="normal", busy_timeout_s=60.0) as database:
            store, admin = SqlTurnStore(database, FakeClock()), MemoryAdmin(database, FakeClock())
            await fold_written(name, model if answered else ExtractiveSummariser(), store)
            done = await admin.check(SESSION, max_input_tokens=1, regardless=True)
            saved.append(100 * (1 - done.tokens_after / done.tokens_before))
            await admin.archive(SESSION, ())
            archived = [turn for each in done.compress for turn in range(each.start_turn, each.end_turn + 1)]
            facts = {turn: fact for turn, fact in facts_due(name, 260).items() if turn in archived}
            recall = Recall(SqlRecallIndex(database, VectorStore(database)), store)
            due += len(facts)
            found += await found_in_archive(recall, facts)
            assert await admin.clear_archive(SESSION) == len(done.compress)
            found_pruned += await found_in_archive(recall, facts)
    assert not answered or 80 <= min(saved) <= max(saved) <= 90
    assert f"{page_says} {min(saved):.0f} %" in text_of("memory")
    assert min(found, found_pruned) >= least * due


def test_61_facts_hold_at_the_end() -> None:
    """A fact that a later one replaces is not among them."""
    assert sum(len(facts_due(name, 260)) for name in WRITTEN) == 61
    assert {48, 52} & facts_due("cabin", 52).keys() == {48}
    assert {48, 52} & facts_due("cabin", 260).keys() == {52}
