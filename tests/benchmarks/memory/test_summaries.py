"""Recorded answers are asked for once, and the final text is judged by the facts that hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.memory.summaries import WRITTEN, RecordedAnswers, facts_due, fold_written
from compaction.errors import CompletionError
from compaction.ports import CompletionAnswer, CompletionRequest

if TYPE_CHECKING:
    from pathlib import Path


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
    first = await fold_written("cabin", RecordedAnswers(kept, writer))
    again = await fold_written("cabin", RecordedAnswers(kept))
    assert (first.summary, first.cursor, writer.asked) == ("Fold 26.", 260, 26)
    assert (again.summary, again.failed) == (first.summary, ())
    with pytest.raises(CompletionError):
        await RecordedAnswers(kept).complete(CompletionRequest("", "Another one.", 100))


def test_61_facts_hold_at_the_end() -> None:
    """A fact that a later one replaces is not among them."""
    assert sum(len(facts_due(name, 260)) for name in WRITTEN) == 61
    assert {48, 52} & facts_due("cabin", 52).keys() == {48}
    assert {48, 52} & facts_due("cabin", 260).keys() == {52}
