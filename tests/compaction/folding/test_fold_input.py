"""What a fold is given: the turns of its batch or of its repair, and nothing of withheld people."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from compaction.errors import StoreError, SummaryRefusedError
from compaction.folding.fold_input import FoldInput
from compaction.folding.ledger_view import LedgerView
from compaction.folding.outbox import Outbox
from compaction.folding.state import Run, SessionState
from compaction.folding.withheld import WithheldPeople
from compaction.model import CompactionState, RunId, SegmentId, Seq, Strategy, TurnPart
from compaction.notes import NoteBuffer
from compaction.summary.chapters import ChapterDue
from compaction.summary.ledger import SegmentLedger
from compaction.summary.port import ChapterRequest, FoldRequest
from compaction.timeline import Timeline
from tests.compaction.rooms import EVENING
from tests.compaction.summary.test_ledger import batch, fact
from tests.compaction.turn_store_contract import turn
from tests.fakes.turn_store import InMemoryTurnStore

BATCH = Run(RunId("r"), Seq(20), Seq(30), Seq(70), (), 1, False, 0.0)
REPAIR = replace(BATCH, start=Seq(10), end=Seq(20), repairs=SegmentId("s1"))
VIEW = LedgerView.of(
    SegmentLedger([batch(0, fact(1, "We rent the cabin in Braemar.")), batch(1, fact(12, "The gate code is 4411."))])
)


class Bench:
    """The input of a session with 81 turns, each of which is stored and said by another person in turn."""

    def __init__(self, stored: int = 81) -> None:
        said = [
            replace(turn(seq), parts=(TurnPart(str(seq % 3), f"Person {seq % 3}", f"This is turn {seq}."),))
            for seq in range(81)
        ]
        self.store = InMemoryTurnStore()
        for each in said[:stored]:
            asyncio.run(self.store.append_turn(EVENING, each))
        timeline, _ = Timeline.restored(said, first=Seq(0), total=81)
        self.withheld = WithheldPeople()
        for each in said:
            self.withheld.note_turn(each)
        folded = CompactionState(Seq(20), 2, "", None)
        self.state = SessionState.restored(folded, live=NoteBuffer(), ended=False)
        self.input = FoldInput(
            EVENING,
            timeline=timeline,
            outbox=Outbox(self.store, EVENING, stored_turns=81, timeout_s=5.0),
            withheld=self.withheld,
            strategy=Strategy.LEDGER,
        )

    def request(self, run: Run) -> FoldRequest:
        """Return the request of a run."""
        made = asyncio.run(self.input.request(run, VIEW, self.state))
        assert isinstance(made, FoldRequest)
        return made


def test_a_batch_is_read_from_memory_and_a_repair_from_the_store() -> None:
    """Both have the turns of their run, and the turns just before them."""
    bench = Bench()
    assert [each.seq for each in bench.request(BATCH).turns] == list(range(20, 30))
    repair = bench.request(REPAIR)
    assert [each.seq for each in repair.turns] == list(range(10, 20))
    assert [each.ref for each in repair.known] == ["s0#0"]


def test_a_repair_needs_all_its_turns() -> None:
    """Turns that the store does not have any more make no segment."""
    with pytest.raises(StoreError, match="Of turns 10 to 19 only 5 are stored"):
        Bench(stored=15).request(REPAIR)


def test_who_opts_out_before_a_fold_is_left_out_of_it() -> None:
    """The request asks again who is withheld: their parts and names are gone, and what was folded with them too."""
    bench = Bench()
    bench.withheld.withhold(lambda: frozenset({"1"}))
    request = bench.request(BATCH)
    assert {part.speaker_id for each in request.turns for part in each.parts} == {"0", "2"}
    assert "Person 1" not in request.roster
    assert bench.input.allowed(VIEW).rendered != VIEW.rendered
    assert bench.input.allowed(VIEW) is bench.input.allowed(VIEW)


def test_what_may_not_be_told_any_more_is_not_asked_for() -> None:
    """Somebody whose words are in a segment or chapter may opt out between the check and the request."""
    bench = Bench()
    due = ChapterDue(1, Seq(0), Seq(20), 0.0, 19.0)
    chapter = replace(BATCH, start=Seq(0), end=Seq(20), chapter=due)
    view = replace(VIEW, chapter=due)
    assert isinstance(asyncio.run(bench.input.request(chapter, view, bench.state)), ChapterRequest)
    bench.withheld.withhold(lambda: frozenset({"1"}))
    for run in (REPAIR, chapter):
        with pytest.raises(SummaryRefusedError, match="meanwhile"):
            asyncio.run(bench.input.request(run, view, bench.state))


def test_the_closing_segment_has_what_was_never_folded() -> None:
    """It begins at the cursor; of withheld people it has nothing."""
    bench = Bench()
    bench.withheld.withhold(lambda: frozenset({"1"}))
    closing = asyncio.run(bench.input.closing_segment(VIEW, bench.state, degraded=True, at=100.0))
    assert closing is not None
    assert (closing.start, closing.end, closing.closing) == (20, 81, True)
    assert "Person 1" not in repr(closing)
