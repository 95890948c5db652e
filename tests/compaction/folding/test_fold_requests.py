"""A fold request has its turns, the facts that it may correct, the turns just before it and only the notes
of its run.
"""

from __future__ import annotations

from compaction.folding.fold_requests import first_context_turn, request_for_batch, request_for_repair, turns_before
from compaction.folding.state import Run
from compaction.model import RunId, SegmentId, Seq, Strategy
from compaction.summary.ledger import SegmentLedger
from compaction.summary.port import REACH_TURNS
from compaction.timeline import Timeline
from tests.compaction.summary.test_ledger import batch, fact
from tests.compaction.turn_store_contract import note, turn

LEDGER = SegmentLedger(
    [batch(0, fact(1, "We rent the cabin in Braemar.")), batch(1, fact(12, "The gate code is 4411."))]
)


def run(start: int, *, notes: tuple[str, ...] = ()) -> Run:
    """Return a run over ten turns."""
    return Run(
        RunId("r"), Seq(start), Seq(start + 10), Seq(start + 50), tuple(note(name).id for name in notes), 1, False, 0.0
    )


def timeline(first: int, total: int) -> Timeline:
    """Return a timeline that has the turns from `first` on in memory."""
    made, _ = Timeline.restored([turn(seq) for seq in range(first, total)], first=Seq(first), total=total)
    return made


def test_due_batch_has_its_turns_and_those_before_it() -> None:
    """A request for a batch has as many turns before the batch as a bare correction can refer back to, as far as they
    are in memory.
    """
    made = request_for_batch(
        run(20, notes=("a",)),
        timeline(0, 81),
        LEDGER,
        rendered=LEDGER.render(),
        pending=(note("a"), note("b")),
        strategy=Strategy.LEDGER,
    )
    assert [each.seq for each in made.turns] == list(range(20, 30))
    assert [each.seq for each in made.before] == list(range(20 - REACH_TURNS, 20))
    assert [each.id for each in made.notes] == ["a"]
    assert [each.ref for each in made.known] == ["s0#0", "s1#0"]
    assert made.previous is not None
    assert "Braemar" in made.previous
    assert turns_before(timeline(18, 81), Seq(20)) == (turn(18), turn(19))
    assert first_context_turn(Seq(3)) == 0


def test_batch_made_again_knows_only_what_was_before_it() -> None:
    """A request to repair a segment knows no facts of that segment and of later ones."""
    stored = [turn(seq) for seq in range(5, 20)]
    made = request_for_repair(run(10), SegmentId("s1"), stored, LEDGER, strategy=Strategy.LEDGER)
    assert [each.seq for each in made.turns] == list(range(10, 20))
    assert [each.seq for each in made.before] == list(range(5, 10))
    assert [each.ref for each in made.known] == ["s0#0"]
    assert made.previous == 'Ada said: "We rent the cabin in Braemar."'
    assert made.notes == ()
