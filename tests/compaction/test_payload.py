"""The covered turns are read from the payload itself, so a missing turn is noticed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.model import Seq
from compaction.payload import (
    Coverage,
    PartKind,
    PayloadPart,
    context_built_fields,
    coverage,
    make_part,
)


def holding(kind: PartKind, start: int, end: int) -> PayloadPart:
    return make_part("user", kind, "words", seq_from=Seq(start), seq_to=Seq(end))


def test_ranges_are_inclusive_and_joined() -> None:
    """Neighbouring turns are joined into one range, and both ends of a range are inclusive."""
    payload = [holding(PartKind.SUMMARY, 0, 9), *(holding(PartKind.TURN, seq, seq) for seq in range(12, 15))]
    assert coverage(payload, 17) == Coverage(
        summarised=((0, 9),), verbatim=((12, 14),), evicted=(), missing=((10, 11), (15, 16))
    )


def test_each_turn_counts_once() -> None:
    """Each turn is counted once. A verbatim turn counts before a summarised one, and a summarised turn before an
    evicted one.
    """
    payload = [
        holding(PartKind.EVICTION_NOTE, 0, 5),
        holding(PartKind.SUMMARY, 0, 3),
        holding(PartKind.CURRENT, 2, 2),
    ]
    assert coverage(payload, 6) == Coverage(
        summarised=((0, 1), (3, 3)), verbatim=((2, 2),), evicted=((4, 5),), missing=()
    )


def test_built_fields_name_ranges_and_costs() -> None:
    """The log fields list the ranges of turns and the tokens of each kind of part. An evicted range is listed only if
    turns were evicted.
    """
    payload = [
        make_part("system", PartKind.SYSTEM, "word"),
        holding(PartKind.EVICTION_NOTE, 0, 4),
        holding(PartKind.TURN, 5, 5),
        holding(PartKind.CURRENT, 6, 6),
    ]
    assert context_built_fields(payload, summary_revision=3, cursor=0, max_input_tokens=40) == {
        "seq_from": 5,
        "seq_to": 6,
        "answer_to": 6,
        "cursor": 0,
        "summary_revision": 3,
        "tokens": {"system": 8, "eviction_note": 8, "turn": 8, "current": 8},
        "total_tokens": 32,
        "max_input_tokens": 40,
        "evicted": (0, 4),
        "note_ids": [],
        "participants": [],
        "recall": [],
    }
    assert context_built_fields([], summary_revision=0)["seq_from"] is None


def test_what_a_part_was_made_of_is_told_by_its_id_alone() -> None:
    """The log fields name notes, facts about people and quotes by their ids and do not contain their words."""
    payload = [
        make_part("system", PartKind.NOTE, "On Ada's screen: a map.", refs=("n1",)),
        make_part("system", PartKind.PARTICIPANTS, "Ada: I live in Lisbon.", refs=("e#1.0", "e#4.0")),
        make_part("system", PartKind.RECALL, "Ada: The code is 7.", refs=("turn:e#3",)),
    ]
    fields = context_built_fields(payload, summary_revision=0)
    assert (fields["note_ids"], fields["participants"], fields["recall"]) == (["n1"], ["e#1.0", "e#4.0"], ["turn:e#3"])
    assert "Lisbon" not in str(fields)
    assert "code" not in str(fields)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([PartKind.TURN, PartKind.CURRENT, PartKind.SUMMARY, PartKind.EVICTION_NOTE]),
            st.integers(0, 30),
            st.integers(0, 10),
        ),
        max_size=12,
    ),
    st.integers(0, 40),
)
def test_every_turn_is_in_exactly_one_place(parts: list[tuple[PartKind, int, int]], total: int) -> None:
    """Every turn of the session is in exactly one of the four lists."""
    found = coverage([holding(kind, start, start + more) for kind, start, more in parts], total)
    listed = [
        seq
        for ranges in (found.summarised, found.verbatim, found.evicted, found.missing)
        for start, end in ranges
        for seq in range(start, end + 1)
    ]
    assert sorted(listed) == list(range(total))
