"""Recorded answers are asked for once, and the final text is judged by the facts that hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.memory.summaries import RECORDED, WRITTEN, RecordedAnswers, answers_file, facts_due, fold_written
from bot.memory.transcript import SaidLine, read_transcript
from compaction.errors import CompletionError
from compaction.memory.segment_record import make_record
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.ports import CompletionAnswer, CompletionRequest
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.folded import closed_refs, fold_request, make_segment
from compaction.summary.llm import LlmSummariser
from compaction.window import Batch, plan
from tests.docs.pages import text_of

if TYPE_CHECKING:
    from pathlib import Path

    from compaction.model import Segment
    from compaction.summary.port import Summariser


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


class KeptInOrder:
    """A model that gives the kept answers of a conversation in their order, whatever it is asked."""

    model = "kept"

    def __init__(self, name: str) -> None:
        self._kept = iter(json.loads(answers_file(name).read_text("utf-8")).values())

    async def complete(self, _: CompletionRequest) -> CompletionAnswer:
        """Return the next answer."""
        return CompletionAnswer(next(self._kept), "stop", None, None)


async def share_saved(name: str, summariser: Summariser) -> int:
    """Return how many percent fewer tokens the records of a conversation have than its folded turns."""
    lines = [line for line in read_transcript(RECORDED / f"{name}.jsonl") if isinstance(line, SaidLine)]
    turns = [
        Turn(Seq(seq), TurnKind.SPEECH, line.at, line.at, (TurnPart(line.speaker, line.speaker, line.text),))
        for seq, line in enumerate(lines)
    ]
    made: list[Segment] = []
    while isinstance(due := plan(len(turns), 10 * len(made)), Batch):
        batch, newest = turns[due.start : due.end], made[-1] if made else None
        request = fold_request(due.start, batch, (), (), made, newest=newest)
        fold = await summariser.fold(request)
        made.append(make_segment(request, fold, session_id=SessionId("s"), revision=len(made), at=float(due.end)))
    records = [make_record(segment, superseded=closed_refs(made), at=0.0) for segment in made]
    before, after = sum(each.original_tokens for each in records), sum(each.compressed_tokens for each in records)
    return round(100 * (1 - after / before))


@pytest.mark.slow
async def test_the_page_says_how_much_shorter_records_are() -> None:
    """With a model and without one, for the written conversations."""
    saved = [[await share_saved(name, LlmSummariser(KeptInOrder(name), max_output_tokens=1_150)) for name in WRITTEN]]
    saved.append([await share_saved(name, ExtractiveSummariser()) for name in WRITTEN])
    (with_model, by_quotes) = map(sorted, saved)
    page = text_of("memory")
    assert f"with a model {with_model[0]} to {with_model[1]} % fewer" in page
    assert f"without one {by_quotes[0]} to {by_quotes[1]} %" in page


def test_61_facts_hold_at_the_end() -> None:
    """A fact that a later one replaces is not among them."""
    assert sum(len(facts_due(name, 260)) for name in WRITTEN) == 61
    assert {48, 52} & facts_due("cabin", 52).keys() == {48}
    assert {48, 52} & facts_due("cabin", 260).keys() == {52}
