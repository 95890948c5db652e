"""Short ways to write folded batches and their facts in tests."""

from __future__ import annotations

from compaction.model import Fact, FactKind, Segment, SegmentId, Seq
from tests.compaction.turn_store_contract import EVENING, T0


def fact(
    seq: int, text: str, kind: FactKind = FactKind.DECISION, closes: tuple[str, ...] = (), *, speaker: str = "Ada"
) -> Fact:
    """Return a fact of one turn."""
    return Fact((Seq(seq),), text, kind, 2, closes, speaker, T0 + seq)


def batch(number: int, *facts: Fact, gist: str = "Ada and Bob talked.") -> Segment:
    """Return the segment of ten turns with these facts, as a model writes it."""
    start = number * 10
    return Segment(
        SegmentId(f"{EVENING}:{start}-{start + 10}"),
        EVENING,
        Seq(start),
        Seq(start + 10),
        T0 + start,
        T0 + start + 9,
        gist,
        facts,
        (),
        "fold.v1",
        original_tokens=200,
    )
