"""When a folded segment is queued, compressed, archived and pruned, with all conditions of spec 3."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from compaction.memory.segment_record import make_record
from compaction.memory.tiers import (
    ARCHIVE_AFTER_TURNS,
    COLD_AFTER_TURNS,
    DROPPED_AFTER_TURNS,
    LEAST_MESSAGES,
    MOST_MOVED,
    SegmentTopics,
    TierChanges,
    TierCounts,
    TieredSegment,
    check_tiers,
    is_cold,
    is_due,
    last_mentions,
)
from compaction.model import Fact, FactKind, Segment, SegmentId, Seq, SessionId, Turn, TurnKind, TurnPart

NOW = 1_760_000_000.0
EVENING = SessionId("evening")


def segment(number: int, *facts: Fact) -> Segment:
    start = 10 * number
    return Segment(
        SegmentId(f"evening:{start}-{start + 10}"),
        EVENING,
        Seq(start),
        Seq(start + 10),
        NOW + start,
        NOW + start + 9,
        " ".join(each.text for each in facts) or "Nothing needs keeping.",
        facts,
        (),
        "extractive",
        original_tokens=200,
    )


def fact(seq: int, text: str, kind: FactKind = FactKind.DECISION, closes: tuple[str, ...] = ()) -> Fact:
    return Fact((Seq(seq),), text, kind, closes=closes, speaker="Ada", at=NOW + seq)


def turn(seq: int, text: str, speaker: str = "Bob") -> Turn:
    return Turn(Seq(seq), TurnKind.SPEECH, NOW + seq, NOW + seq + 1, (TurnPart(f"id-{speaker}", speaker, text),))


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


def test_a_segment_is_cold_when_all_three_hold() -> None:
    """A segment is cold only if it was not mentioned for more than twenty turns, has no open thread and has at least
    five messages.
    """
    subjects = SegmentTopics([CABIN])
    cold = kept()
    silent = cold.last_mention + COLD_AFTER_TURNS + 1
    assert is_cold(cold, subjects, total_turns=silent)
    assert not is_cold(cold, subjects, total_turns=silent - 1)
    assert not is_cold(replace(cold, message_count=LEAST_MESSAGES - 1), subjects, total_turns=silent)
    asking = segment(0, fact(1, "Who brings the big tent?", FactKind.OPEN))
    assert not is_cold(kept(asking), SegmentTopics([asking]), total_turns=silent)


def test_a_thread_closes_when_a_later_fact_closes_it_or_when_it_is_dropped() -> None:
    """The fold says which open question a later fact closes. Nobody answers one that was left alone for so long."""
    asking = segment(0, fact(1, "Who brings the big tent?", FactKind.OPEN))
    for closes, closed in (((f"{asking.id}#0",), True), ((), False)):
        topics = SegmentTopics([asking, segment(1, fact(11, "I bring the tent.", closes=closes))])
        assert topics.threads_closed(asking, turns_since_mention=30) is closed
    alone = SegmentTopics([asking])
    assert not alone.threads_closed(asking, turns_since_mention=DROPPED_AFTER_TURNS - 1)
    assert alone.threads_closed(asking, turns_since_mention=DROPPED_AFTER_TURNS)


def test_nothing_is_queued_while_there_is_room() -> None:
    """A segment is queued only if more than sixty per cent of the context is used."""
    assert judged(kept(), total=100, share=0.6) == TierChanges()
    assert judged(kept(), total=100, share=0.61).queue == (CABIN.id,)


def test_a_check_by_hand_does_not_ask_how_full_the_context_is() -> None:
    """A check by hand ignores how full the context is. It queues and compresses at once, and reports the tokens before
    and after.
    """
    done = judged(kept(), total=100, share=0.0, regardless=True)
    assert done.queue == (CABIN.id,)
    assert [record.segment_id for record in done.compress] == [CABIN.id]
    assert done.report() == f"Compressed 1 segment: 200 tokens of turns -> {done.tokens_after} tokens of records."
    assert TierCounts.after((kept(),), done) == TierCounts(compressed=1)


def test_what_is_queued_is_compressed_at_the_next_check() -> None:
    """A queued segment is compressed at the next check. If it was mentioned again in between, it leaves the queue."""
    queued = kept(queued_at_turn=90, queued_at=NOW)
    assert [each.segment_id for each in judged(queued, total=100, share=0.0).compress] == [CABIN.id]
    again = replace(queued, last_mention=95)
    assert judged(again, total=100, share=0.9) == TierChanges(release=(CABIN.id,))


def test_a_record_tells_whether_a_tool_has_failed_in_its_turns() -> None:
    """By the turns that were answered, not by words."""
    queued = kept(queued_at_turn=90, queued_at=NOW)
    for turns, told in (set(), False), ({CABIN.end}, False), ({CABIN.start, 900}, True):
        (record,) = judged(queued, total=100, share=0.0, failed_turns=frozenset(turns)).compress
        assert record.metadata.contains_errors is told


def test_only_what_is_compressed_and_old_goes_to_the_archive() -> None:
    """A segment is archived only if it is compressed, is more than fifty turns old, and more than four fifths of the
    context are used.
    """
    record = make_record(CABIN, at=NOW)
    compressed = kept(record=record, compressed_at_turn=50)
    old = CABIN.end + ARCHIVE_AFTER_TURNS + 1
    assert judged(compressed, total=old, share=0.81).archive == (CABIN.id,)
    assert judged(compressed, total=old - 1, share=0.81).archive == ()
    assert judged(compressed, total=old, share=0.8).archive == ()
    assert judged(kept(), total=old, share=0.81).archive == ()
    assert judged(replace(compressed, archived_at=NOW), total=old, share=0.9) == TierChanges()


def test_a_turn_speaks_of_a_segment_by_what_the_segment_is_about() -> None:
    """A turn mentions a segment by names and rare words. Words of every segment, speakers' names and membership turns
    do not count.
    """
    others = [segment(number, fact(10 * number, f"We buy {number * 7} apples.")) for number in range(1, 12)]
    subjects = SegmentTopics([CABIN, *others])
    said = [
        turn(130, "Is the cabin in Braemar still free?"),
        turn(131, "Ada, what do you think?"),
        turn(132, "We buy something."),
        replace(turn(133, "The cabin!"), kind=TurnKind.MEMBERSHIP),
    ]
    assert last_mentions(subjects, said) == {CABIN.id: 130}
    assert subjects.segments_mentioned(replace(said[0], tombstone=True)) == frozenset()


def test_a_check_is_due_every_ten_turns() -> None:
    """A check is due after ten turns, not after nine."""
    assert [total for total in range(41) if is_due(total, 20)] == list(range(30, 41))


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
        assert total - by_id[name].segment.end > ARCHIVE_AFTER_TURNS
    assert not set(moved) & {each.segment.id for each in every if each.archived_at is not None}
    assert moves.tokens_before == sum(record.original_tokens for record in moves.compress)


def test_a_check_moves_so_many_at_once_and_no_more() -> None:
    """A check moves a limited number of segments, the oldest first. A check by hand moves all of them."""
    every = [kept(segment(number, fact(10 * number, f"We buy {number} apples."))) for number in range(3 * MOST_MOVED)]
    moved = judged(*every, total=2000, share=0.9)
    assert moved.queue == tuple(each.segment.id for each in every[:MOST_MOVED])
    assert len(judged(*every, total=2000, share=0.0, regardless=True).compress) == len(every)
