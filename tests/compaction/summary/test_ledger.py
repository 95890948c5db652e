"""The summary is a plain paragraph that records the sources of its sentences (invariant 5 of COMPACTION)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.wording import ends_a_sentence
from compaction.model import Fact, FactKind, NoteId, Segment, SegmentId, Seq
from compaction.summary.ledger import SegmentLedger, render_summary
from compaction.summary.port import MAX_SUMMARY_CHARS
from tests.compaction.turn_store_contract import EVENING, T0


def fact(
    seq: int, text: str, kind: FactKind = FactKind.DECISION, *, speaker: str = "Ada", supersedes: tuple[str, ...] = ()
) -> Fact:
    return Fact((Seq(seq),), kind, speaker, T0 + seq, text, supersedes)


def batch(number: int, *facts: Fact, gist: str = "Ada and Bob talked.") -> Segment:
    start = number * 10
    return Segment(
        SegmentId(f"s{number}"),
        EVENING,
        Seq(start),
        Seq(start + 10),
        T0 + start,
        T0 + start + 9,
        gist,
        facts,
        (),
        "extractive",
    )


def test_nothing_folded_is_no_summary() -> None:
    """Before the first landing there is no summary."""
    assert render_summary([]) is None


def test_sentences_come_in_the_order_of_the_kinds_with_their_speakers() -> None:
    """The summary has lasting facts first, then decisions, open ones, what is done, and others, each in order."""
    summary = render_summary(
        [
            batch(
                0,
                fact(1, "The weather in Oslo was bad.", FactKind.OTHER),
                fact(2, "We rent the cabin."),
                fact(3, "Who brings the tent?", FactKind.OPEN, speaker="Bob"),
                fact(4, "We are on the Tokyo map.", FactKind.DOING),
                fact(5, "I'm allergic to walnuts.", FactKind.LASTING, speaker="Cy"),
                fact(6, "We leave at nine."),
            )
        ]
    )
    assert summary is not None
    assert summary.text == (
        "Cy: I'm allergic to walnuts. Ada: We rent the cabin. Ada: We leave at nine. Bob: Who brings the tent? "
        "Ada: We are on the Tokyo map. Ada: The weather in Oslo was bad."
    )


def test_each_sentence_leads_to_its_turn_and_segment() -> None:
    """Each sentence of the summary has its segment, turn, speaker, time and the reference of its fact."""
    summary = render_summary([batch(3, fact(34, "We rent the cabin.", speaker="Bob"))])
    assert summary is not None
    (sentence,) = summary.sentences
    assert sentence.text == "Bob: We rent the cabin."
    assert (sentence.segment_ids, sentence.turn_seqs, sentence.refs) == (("s3",), (34,), ("s3#0",))
    assert (sentence.speaker, sentence.at, sentence.kind) == ("Bob", T0 + 34, FactKind.DECISION)


def test_what_was_seen_has_no_turn() -> None:
    """A fact of a note says whose screen it was and claims no turn."""
    seen = replace(fact(0, "On Bob's screen: the map.", FactKind.DOING, speaker="Bob"), note_id=NoteId("n"))
    summary = render_summary([batch(0, seen)])
    assert summary is not None
    assert summary.text == "On Bob's screen: the map."
    assert summary.sentences[0].turn_seqs == ()


def test_superseded_facts_are_gone() -> None:
    """A superseded fact is left out, so the summary has only the newest value."""
    summary = render_summary(
        [
            batch(0, fact(1, "The gate code is 4411."), fact(2, "We leave at nine.")),
            batch(1, fact(11, "The gate code is 7023 now.", supersedes=("s0#0",))),
        ]
    )
    assert summary is not None
    assert "4411" not in summary.text
    assert "7023" in summary.text
    assert "nine" in summary.text


def test_same_thing_said_twice_is_told_once() -> None:
    """If the same thing was said twice, only the newer statement is in the summary."""
    summary = render_summary([batch(0, fact(1, "We leave at nine.")), batch(1, fact(11, "We leave at nine!"))])
    assert summary is not None
    assert summary.text == "Ada: We leave at nine!"


def test_old_decision_outlives_much_later_talk() -> None:
    """A hundred batches of chatter do not push out a lasting fact, and the newest batch is in the summary too."""
    chatter = [
        batch(
            number,
            *(
                fact(number * 10 + at, f"That boss number {number * 10 + at} looked funny today.", FactKind.OTHER)
                for at in range(8)
            ),
        )
        for number in range(1, 101)
    ]
    summary = render_summary([batch(0, fact(4, "We decided to rent the cabin in Braemar.")), *chatter])
    assert summary is not None
    assert "cabin in Braemar" in summary.text
    assert any(sentence.segment_ids == ("s100",) for sentence in summary.sentences)
    assert len(summary.text) > MAX_SUMMARY_CHARS * 0.8


def test_segments_without_facts_are_told_by_their_gist() -> None:
    """A segment without facts is represented by its gist."""
    summary = render_summary([batch(0, gist="Ada talked; nothing in it needs keeping.")])
    assert summary is not None
    assert summary.text == "Ada talked; nothing in it needs keeping."
    assert summary.sentences[0].turn_seqs == tuple(range(10))


def test_closing_segment_is_not_folded_history() -> None:
    """A closing segment is not part of the summary, because its turns are still in the window."""
    assert render_summary([replace(batch(0, fact(1, "We leave.")), closing=True)]) is None


def test_ledger_adds_up_to_the_same_summary() -> None:
    """Adding segments one by one gives the same summary as adding them all at once, and previewing a segment changes
    nothing.
    """
    segments = [batch(number, fact(number * 10, f"We need {number} tents for {number} days.")) for number in range(30)]
    ledger = SegmentLedger()
    for segment in segments:
        ahead = ledger.with_segment(segment)
        before = ledger.render()
        assert ledger.render() == before
        ledger.add(segment)
        assert ledger.render() == ahead.render()
    assert ledger.render() == render_summary(segments)
    assert ledger.span == (T0, T0 + 299)


def test_known_facts_are_the_ones_that_hold() -> None:
    """The known facts are those that are not superseded, newest last."""
    ledger = SegmentLedger(
        [
            batch(0, fact(1, "The code is 4411."), fact(2, "We leave.")),
            batch(1, fact(11, "The code is 7023.", supersedes=("s0#0",))),
        ]
    )
    assert [known.ref for known in ledger.known_facts()] == ["s0#1", "s1#0"]
    assert ledger.roster == {"Ada"}


_texts = st.text(max_size=300)
_facts = st.builds(
    fact, st.integers(0, 9), _texts, st.sampled_from(FactKind), speaker=st.sampled_from(["Ada", "Bob", "X" * 60])
)


@pytest.mark.slow
@given(st.lists(st.tuples(st.lists(_facts, max_size=6), _texts.filter(lambda text: text.strip() != "")), max_size=12))
def test_any_segments_make_a_short_whole_paragraph(written: list[tuple[list[Fact], str]]) -> None:
    """For any facts the summary has at most 1,200 characters, whole sentences and one line, and is always the same."""
    segments = [batch(number, *facts, gist=gist) for number, (facts, gist) in enumerate(written)]
    summary = render_summary(segments)
    if summary is None:
        assert segments == []
        return
    assert len(summary.text) <= MAX_SUMMARY_CHARS
    assert ends_a_sentence(summary.text)
    assert "\n" not in summary.text
    assert summary.text == " ".join(sentence.text for sentence in summary.sentences)
    assert render_summary(segments) == summary


def test_the_gist_of_a_pruned_segment_stays_in_the_summary() -> None:
    """The facts of a pruned segment are gone, so the summary has its gist instead. A later correction still replaces
    the gist.
    """
    old = replace(batch(0, gist="Ada: We rent the cabin in Braemar."), pruned=True)
    newer = [
        batch(number, fact(number * 10, f"We bought {number} tents for {number * 7} pounds.")) for number in (1, 2)
    ]
    summary = render_summary([old, *newer])
    assert summary is not None
    assert "Ada: We rent the cabin in Braemar." in summary.text
    (sentence,) = [each for each in summary.sentences if "Braemar" in each.text]
    assert sentence.segment_ids == (old.id,)
    assert sentence.turn_seqs == tuple(range(10))
    corrected = batch(3, fact(31, "Actually we rent the house in Perth.", supersedes=sentence.refs))
    after = render_summary([old, *newer, corrected])
    assert after is not None
    assert "Braemar" not in after.text


def paragraph(number: int, gist: str) -> Segment:
    """Return a segment that the recursive strategy wrote."""
    return replace(batch(number, gist=gist), summariser="llm recursive.v2")


def test_newest_paragraph_is_the_summary() -> None:
    """The newest recursive paragraph is the whole summary. Each sentence refers to the first batch whose paragraph had
    it.
    """
    ledger = SegmentLedger([paragraph(0, "Ada plans a hike. Bob is late.")])
    ledger = ledger.with_segment(paragraph(1, "Ada plans a hike. Cy brings the stove."))
    rendered = ledger.render()
    assert rendered is not None
    assert rendered.text == "Ada plans a hike. Cy brings the stove."
    assert [(each.text, each.turn_seqs[0]) for each in rendered.sentences] == [
        ("Ada plans a hike.", 0),
        ("Cy brings the stove.", 10),
    ]
    assert rendered == render_summary(ledger.segments)


def test_ledger_goes_on_from_a_paragraph() -> None:
    """After a change from recursive to ledger, the summary has the sentences of the last paragraph beside new facts,
    but none of older paragraphs.
    """
    rendered = render_summary(
        [
            paragraph(0, "Dora hid the old key in Lisbon."),
            paragraph(1, "Ada plans a hike to Braemar. Cy brings the stove."),
            batch(2, fact(20, "We leave at nine on Sunday.")),
        ]
    )
    assert rendered is not None
    assert "Ada: We leave at nine on Sunday." in rendered.text
    assert "Ada plans a hike to Braemar." in rendered.text
    assert "Lisbon" not in rendered.text


def test_paragraph_takes_over_from_a_ledger() -> None:
    """After a change from ledger to recursive, the paragraph is the whole summary, because it was written from the
    ledger's summary.
    """
    rendered = render_summary(
        [batch(0, fact(1, "We leave at nine on Sunday.")), paragraph(1, "They leave at nine on Sunday.")]
    )
    assert rendered is not None
    assert rendered.text == "They leave at nine on Sunday."
