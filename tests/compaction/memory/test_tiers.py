"""When a folded segment is queued, compressed, archived and pruned, with all conditions of spec 3."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.memory.segment_record import iso, make_record
from compaction.memory.tiers import (
    MOST_MOVED,
    SegmentTopics,
    TierChanges,
    TierCounts,
    TieredSegment,
    check_tiers,
    is_cold,
    queue_json,
    unfolded_tokens,
    with_mentions,
)
from compaction.model import FactKind, Segment, TurnKind
from tests.compaction.segments import batch as segment
from tests.compaction.segments import fact
from tests.compaction.turn_store_contract import T0 as NOW
from tests.compaction.turn_store_contract import turn

CABIN = segment(0, fact(1, "We take the cabin in Braemar."))


def kept(what: Segment = CABIN, **others: object) -> TieredSegment:
    values: dict[str, object] = {"message_count": 10, "last_mention": what.end - 1} | others
    return TieredSegment(what, **values)  # type: ignore[arg-type]


def judged(
    *each: TieredSegment, total: int, share: float, regardless: bool = False, failed_turns: frozenset[int] = frozenset()
) -> TierChanges:
    subjects = SegmentTopics(one.segment for one in each)
    return check_tiers(
        each,
        subjects,
        total_turns=total,
        context_tokens=round(1000 * share),
        max_input_tokens=1000,
        now=NOW,
        failed_turns=failed_turns,
        regardless=regardless,
    )


def test_a_check_by_hand_does_not_ask_how_full_the_context_is() -> None:
    """A check by hand ignores how full the context is. It queues and compresses at once, and reports the tokens before
    and after.
    """
    done = judged(kept(), total=100, share=0.0, regardless=True)
    assert done.queue == (CABIN.id,)
    assert [record.segment_id for record in done.compress] == [CABIN.id]
    assert (
        done.report()
        == f"Compressed 1 segment: {done.tokens_before} tokens of turns -> {done.tokens_after} tokens of records."
    )
    assert TierCounts.after((kept(),), done) == TierCounts(compressed=1)


COMPRESSED = {"record": make_record(CABIN, at=NOW)}


@pytest.mark.covers("3.1", "3.2", "3.4")
@pytest.mark.parametrize(
    ("total", "share", "others", "moved"),
    [
        # Its last turn is 9. Twenty turns without a mention, more than 60 %, five messages.
        (30, 0.61, {"message_count": 5}, ["queue"]),
        (29, 0.61, {}, []),
        (30, 0.60, {}, []),
        (30, 0.61, {"message_count": 4}, []),
        # At a later check, whatever the share is.
        (80, 0.10, {"queued_at_turn": 60}, ["compress"]),
        (80, 0.10, {"queued_at_turn": 60, "last_mention": 79}, ["release"]),
        # More than 80 %, more than fifty turns old.
        (61, 0.81, COMPRESSED, ["archive"]),
        (60, 0.81, COMPRESSED, []),
        (61, 0.80, COMPRESSED, []),
    ],
)
def test_a_segment_moves_at_its_numbers(total: int, share: float, others: dict[str, object], moved: list[str]) -> None:
    """It is queued, compressed and archived at the numbers of spec 3, and not before."""
    done = judged(kept(CABIN, **others), total=total, share=share)
    changes = {"queue": done.queue, "release": done.release, "compress": done.compress, "archive": done.archive}
    assert [name for name, ids in changes.items() if ids] == moved


def test_a_record_tells_whether_a_tool_has_failed_in_its_turns() -> None:
    """By the turns that were answered, not by words."""
    queued = kept(queued_at_turn=90, queued_at=NOW)
    for turns, told in (set(), False), ({CABIN.end}, False), ({CABIN.start, 900}, True):
        (record,) = judged(queued, total=100, share=0.0, failed_turns=frozenset(turns)).compress
        assert record.metadata.contains_errors is told


def test_three_hours_at_the_defaults_move_the_tiers() -> None:
    """The prompt itself stays small; what the session would need unfolded fills the room."""
    evening = [segment(number) for number in range(70)]
    assert unfolded_tokens(evening, 4_000) / 28_672 > 0.6
    assert unfolded_tokens(evening[:20], 4_000) / 28_672 < 0.6


@pytest.mark.covers("3.4")
def test_open_thread_keeps_a_segment_warm_until_it_is_closed_or_dropped() -> None:
    """A later fact closes it by its ref."""
    asking = segment(0, fact(1, "Who brings the tent?", FactKind.OPEN))
    assert not SegmentTopics([asking]).threads_closed(asking, turns_since_mention=20)
    assert SegmentTopics([asking]).threads_closed(asking, turns_since_mention=100)
    closing = segment(1, fact(11, "Bob brings the tent.", closes=(f"{asking.id}#0",)))
    assert SegmentTopics([asking, closing]).threads_closed(asking, turns_since_mention=20)


@pytest.mark.covers("3.4")
def test_turn_mentions_segments_by_shared_words_or_a_rare_figure() -> None:
    """What many segments have, the names of those who talk, and who comes or goes mention none."""
    folded = [segment(at, fact(at * 10, f"The harbour boat {at + 4000} sails north {at}.")) for at in range(8)]
    folded.append(segment(8, fact(81, "The cabin in Braemar has a blue stove.")))
    heard = with_mentions(
        map(kept, folded),
        SegmentTopics(folded),
        [
            turn(100, "Is the stove in the cabin on?"),
            turn(101, "Number 4003!"),
            turn(102, "Ada, the harbour boat?"),
            replace(turn(103, "The cabin's stove!"), kind=TurnKind.MEMBERSHIP),
            replace(turn(104, "The cabin's stove!"), tombstone=True),
        ],
    )
    assert {each.segment.id: each.last_mention for each in heard if each.last_mention >= 100} == {
        folded[8].id: 100,
        folded[3].id: 101,
    }


@st.composite
def held(draw: st.DrawFn) -> TieredSegment:
    """Draw a segment in any possible state."""
    number = draw(st.integers(0, 30))
    kind = draw(st.sampled_from(list(FactKind)))
    what = segment(number, fact(10 * number, draw(st.sampled_from(["Who brings it?", "The code is 7.", ""])), kind))
    state = draw(st.sampled_from(["folded", "queued", "compressed", "archived", "pruned"]))
    one = TieredSegment(what, draw(st.integers(0, 10)), draw(st.integers(what.end - 1, 400)))
    if state == "folded":
        return one
    one = replace(one, queued_at_turn=draw(st.integers(0, 400)), queued_at=NOW)
    if state == "queued":
        return one
    one = replace(one, record=make_record(what, at=NOW), compressed_at_turn=350)
    if state == "compressed":
        return one
    one = replace(one, archived_at=NOW - draw(st.floats(0, 60 * 24 * 3600.0)))
    return one if state == "archived" else replace(one, pruned_at=NOW)


@pytest.mark.covers("3.2", "3.4")
@given(st.lists(held(), max_size=8, unique_by=lambda each: each.segment.id), st.integers(0, 500), st.floats(0, 1.2))
def test_each_move_has_all_its_conditions(every: list[TieredSegment], total: int, share: float) -> None:
    """From any state, no segment is moved twice at once, no segment is moved without its conditions, and archived
    segments stay archived.
    """
    moves = judged(*every, total=total, share=share)
    by_id = {each.segment.id: each for each in every}
    subjects = SegmentTopics(each.segment for each in every)
    moved = [*moves.queue, *moves.release, *(record.segment_id for record in moves.compress), *moves.archive]
    assert len(moved) == len(set(moved))
    for name in moves.queue:
        assert share > 0.6 - 0.001
        assert is_cold(by_id[name], subjects, total_turns=total)
        assert by_id[name].queued_at_turn is None
    for record in moves.compress:
        assert by_id[record.segment_id].queued_at_turn is not None
        assert is_cold(by_id[record.segment_id], subjects, total_turns=total)
    for name in moves.archive:
        assert share > 0.8 - 0.001
        assert by_id[name].record is not None
        assert total - by_id[name].segment.end > 50
    assert not set(moved) & {each.segment.id for each in every if each.archived_at is not None}
    assert moves.tokens_before == sum(record.original_tokens for record in moves.compress)


def test_a_check_moves_so_many_at_once_and_no_more() -> None:
    """A check moves a limited number of segments, the oldest first. A check by hand moves all of them."""
    every = [kept(segment(number, fact(10 * number, f"We buy {number} apples."))) for number in range(3 * MOST_MOVED)]
    moved = judged(*every, total=2000, share=0.9)
    assert moved.queue == tuple(each.segment.id for each in every[:MOST_MOVED])
    assert len(judged(*every, total=2000, share=0.0, regardless=True).compress) == len(every)


@pytest.mark.covers("3.6")
def test_a_queue_tells_what_waits_and_what_is_done() -> None:
    """The exported queue has the waiting and the compressed segments, and no other ones."""
    waiting, done, warm = (segment(number, fact(10 * number, "We leave at nine.")) for number in range(3))
    kept = [
        TieredSegment(waiting, 10, 12, queued_at_turn=60, queued_at=NOW),
        TieredSegment(
            done, 10, 19, queued_at_turn=60, queued_at=NOW, record=make_record(done, at=NOW), compressed_at_turn=70
        ),
        TieredSegment(warm, 10, 29),
    ]
    queue: dict[str, Any] = queue_json(
        kept,
        topics={waiting.id: "Leaving at nine"},
        total_turns=75,
        last_check_turn=70,
        location=lambda each: f"compressed_context/{each.segment.id}.json",
    )
    (pending,), (compressed,) = queue["pending"], queue["compressed"]
    assert pending == {
        "segment_id": waiting.id,
        "topic": "Leaving at nine",
        "start_turn": 0,
        "end_turn": 9,
        "message_count": 10,
        "turns_since_mention": 62,
        "queued_at_turn": 60,
        "timestamp": iso(NOW),
    }
    assert (compressed["segment_id"], compressed["compressed_at_turn"]) == (done.id, 70)
    assert compressed["storage_location"] == f"compressed_context/{done.id}.json"
    assert (list(queue), queue["last_check_turn"]) == (["pending", "compressed", "last_check_turn"], 70)
