"""The summary is a plain paragraph that records the sources of its sentences (invariant 5 of COMPACTION)."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.text import ends_a_sentence
from compaction.model import Chapter, ChapterId, Fact, FactKind, NoteId, Segment, SegmentId, Seq
from compaction.summary.chapters import ChapterDue
from compaction.summary.extractive import extract_chapter
from compaction.summary.ledger import SegmentLedger, render_summary
from compaction.summary.paragraph import fact_worth
from compaction.summary.port import MAX_SUMMARY_CHARS
from compaction.summary.required_facts import required_facts
from compaction.summary.segment_facts import SegmentFacts
from compaction.summary.segments import make_chapter
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


def test_sentences_come_in_the_order_of_talk_with_their_speakers() -> None:
    """The summary quotes who said what in the order of talk, and adjacent words of one person are one sentence."""
    summary = render_summary(
        [
            batch(
                0,
                fact(1, "The weather in Oslo was bad.", FactKind.OTHER),
                fact(2, "We rent the cabin."),
                fact(3, "Who brings the tent?", FactKind.OPEN, speaker="Bob"),
                fact(5, "I'm allergic to walnuts.", FactKind.LASTING, speaker="Cy"),
                replace(fact(6, "Dora owes Ada 40 euros.", speaker="Dora"), quoted=False),
            )
        ]
    )
    assert summary is not None
    assert summary.text == (
        'Ada said: "The weather in Oslo was bad. We rent the cabin." Bob said: "Who brings the tent?" '
        'Cy said: "I\'m allergic to walnuts." Dora owes Ada 40 euros.'
    )


def test_each_sentence_leads_to_its_turn_and_segment() -> None:
    """Each sentence of the summary has its segment, turn, speaker, time and the reference of its fact."""
    summary = render_summary([batch(3, fact(34, "We rent the cabin.", speaker="Bob"))])
    assert summary is not None
    (sentence,) = summary.sentences
    assert sentence.text == 'Bob said: "We rent the cabin."'
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


_STATEMENTS = st.sampled_from(["The code is 7023.", "Max sails.", "Max sails to Rome on Friday.", "Oh no.", ""])
_REFS = st.lists(st.builds("s{}#{}".format, st.integers(0, 5), st.integers(0, 4)), max_size=3).map(tuple)


@pytest.mark.slow
@given(st.lists(st.lists(st.tuples(_STATEMENTS, _REFS), max_size=5), min_size=1, max_size=6))
def test_the_weightiest_facts_are_those_of_all_that_hold(told: list[list[tuple[str, tuple[str, ...]]]]) -> None:
    """The shortlist of a long session has the facts that it would have if each was read: those that no longer hold, and
    those without a text, take nobody's place.
    """
    batches = [
        batch(number, *(fact(10 * number + at, text, supersedes=gone) for at, (text, gone) in enumerate(facts)))
        for number, facts in enumerate(told)
    ]
    gone = {ref for each in batches for one in each.facts for ref in one.supersedes}
    holding = [
        (-fact_worth(one), -one.at, f"{each.id}#{number}")
        for each in batches
        for number, one in enumerate(each.facts)
        if one.text and f"{each.id}#{number}" not in gone
    ]
    with patch("compaction.summary.ledger._SHORTLIST", 4):
        listed = SegmentLedger(batches)._weightiest(list(map(SegmentFacts.of, batches)))
    assert [each.ref for each in listed] == [ref for *_, ref in sorted(holding)[:4]]


def test_same_thing_said_twice_is_told_once() -> None:
    """If one person said the same thing twice, it is in the summary once."""
    summary = render_summary([batch(0, fact(1, "We leave at nine.")), batch(1, fact(11, "We leave at nine."))])
    assert summary is not None
    assert summary.text == 'Ada said: "We leave at nine."'


def test_what_only_the_longer_of_two_facts_says_is_told() -> None:
    """A short fact in a model's words, though it is worthier, leaves out nothing of a longer one about the same."""
    short = replace(fact(1, "Ada is allergic to nuts.", FactKind.LASTING), quoted=False, importance=3)
    long = replace(
        fact(11, "Ada is allergic to nuts and keeps an inhaler in the blue bag.", FactKind.LASTING), quoted=False
    )
    summary = render_summary([batch(0, short), batch(1, long)])
    assert summary is not None
    assert "inhaler in the blue bag" in summary.text


def test_a_question_is_not_its_answer() -> None:
    """A question and a statement of the same words are two sentences."""
    said = [fact(1, "Is the raid on Friday?", FactKind.OPEN), fact(4, "The raid is on Friday.")]
    summary = render_summary([batch(0, *said)])
    assert summary is not None
    assert summary.text == 'Ada said: "Is the raid on Friday? The raid is on Friday."'


def test_who_takes_up_a_statement_is_quoted_for_themselves() -> None:
    """What needs a statement before it to be understood is kept with it, but nobody is quoted with another's words, and
    the statement is told once.
    """
    summary = render_summary(
        [
            batch(
                0,
                fact(1, "We rent the cabin."),
                fact(2, "My balcony has one brave sunflower."),
                replace(fact(2, "My balcony has one brave sunflower. Cy: Mine has a pigeon."), turns=(Seq(2), Seq(3))),
                fact(4, "I leave for Oslo at nine.", speaker="Cy"),
            )
        ]
    )
    assert summary is not None
    assert summary.text == (
        'Ada said: "We rent the cabin. My balcony has one brave sunflower." Cy said: "Mine has a pigeon." '
        'Cy said: "I leave for Oslo at nine."'
    )


def test_a_question_that_several_people_answer_is_told_once() -> None:
    """Each answer is quoted from who gave it; many user names of Discord have a full stop."""
    answers = [(2, "cy.blue: Not me."), (3, "Dee: I have the blue one.")]
    facts = [
        replace(fact(1, f"Who has the blue key? {answer}"), turns=(Seq(1), Seq(seq)), speaker="Bob")
        for seq, answer in answers
    ]
    summary = render_summary([batch(0, *facts)])
    assert summary is not None
    assert summary.text == (
        'Bob said: "Who has the blue key?" cy.blue said: "Not me." Dee said: "I have the blue one."'
    )


def test_a_word_of_another_language_changes_not_how_the_summary_quotes() -> None:
    summary = render_summary([batch(0, fact(1, "We rent the cabin in Braemar."), fact(4, "Morgen.", speaker="Bob"))])
    assert summary is not None
    assert summary.text == 'Ada said: "We rent the cabin in Braemar." Bob said: "Morgen."'


def test_a_colon_in_somebodys_words_makes_no_speaker() -> None:
    """Only who is quoted elsewhere is taken for the speaker of what follows a colon."""
    words = "We rent the cabin. The reason: It is near the lake."
    summary = render_summary([batch(0, replace(fact(1, words), turns=(Seq(1), Seq(2))))])
    assert summary is not None
    assert summary.text == f'Ada said: "{words}"'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I'm allergic to peanuts.", "I'm allergic to peanuts."),
        ("I can come on Friday.", "I can't come on Friday."),
        ("My locker code is 4417.", "My locker code is 9052."),
    ],
)
def test_what_different_people_say_is_never_the_same(one: str, other: str) -> None:
    """Alike or opposite statements of two people are both in the summary."""
    said = [fact(1, one, FactKind.LASTING), fact(2, other, FactKind.LASTING, speaker="Bob")]
    summary = render_summary([batch(0, *said)])
    assert summary is not None
    assert summary.text == f'Ada said: "{one}" Bob said: "{other}"'


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
    assert any({"s99", "s100"} & {*sentence.segment_ids} for sentence in summary.sentences)
    assert len(summary.text) > MAX_SUMMARY_CHARS * 0.8


def test_each_third_of_the_evening_has_its_share() -> None:
    """The beginning, the middle and the end of an evening are all told, with what was spoken of most."""
    evening = [
        batch(
            number,
            *(
                fact(10 * number + at, f"Then we met {name} near {place} on day {10 * number + at}.", FactKind.DOING)
                for at, (name, place) in enumerate([(names[0], names[1]), (names[1], names[0]), (names[2], names[0])])
            ),
        )
        for number, names in enumerate(
            [("Wendel", "Ulm", "Rosa")] * 20 + [("Kitrin", "Varna", "Olek")] * 20 + [("Smirna", "Brno", "Petra")] * 20
        )
    ]
    summary = render_summary(evening)
    assert summary is not None
    for name in ("Wendel", "Ulm", "Rosa", "Kitrin", "Varna", "Olek", "Smirna", "Brno", "Petra"):
        assert name in summary.text


def test_a_chapter_over_two_thirds_of_the_evening_leaves_each_its_share() -> None:
    """After a hundred folds one chapter is over the first 64, and the middle third is told none the less."""
    ledger = SegmentLedger()
    guests = [f"Guest{number:02}" for number in range(100)]
    for number, guest in enumerate(guests):
        ledger.add(batch(number, fact(10 * number, f"Then we met {guest}."), gist=f"They talked about {guest}."))
        while (due := ledger.chapter_due()) is not None:
            made = extract_chapter(ledger.chapter_request(due))
            ledger = ledger.with_chapter(
                make_chapter(due, made, session_id=EVENING, summariser="extractive", at=due.ended_at)
            )
    summary = ledger.render()
    assert summary is not None
    told = [sum(guest in summary.text for guest in third) for third in (guests[:33], guests[33:66], guests[66:])]
    assert min(told) > max(told) / 2


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


def test_old_facts_are_known_by_their_importance() -> None:
    """Of hundreds of facts the newest are known and, of the older ones, those of importance 3 and then 2."""
    batches = [batch(0, fact(1, "The mayor pays 300 crowns."), replace(fact(2, "It rains."), importance=1))]
    batches += [
        batch(number, *(replace(fact(10 * number, f"Die roll {number} {each}."), importance=1) for each in range(8)))
        for number in range(1, 40)
    ]
    known = {each.fact.text for each in SegmentLedger(batches).known_facts()}
    assert "The mayor pays 300 crowns." in known
    assert "It rains." not in known
    assert "Die roll 39 7." in known


def test_the_oldest_facts_that_must_be_told_are_known() -> None:
    """Hundreds of facts of importance 3 don't push out the first ones of anybody: a summary must have the same facts as
    if all were known.
    """

    def vital(number: int, each: int) -> Fact:
        who = ("Ada", "Bob", "Cy")[each]
        said = fact(10 * number + each, f"Code {number} of {who} is {number}{each}77.", FactKind.LASTING, speaker=who)
        return replace(said, importance=3, subject=who)

    first = replace(fact(1, "Cy is allergic to walnuts.", FactKind.LASTING, speaker="Cy"), importance=3, subject="Cy")
    batches = [
        batch(0, first),
        *(batch(number, *(vital(number, each) for each in range(3))) for number in range(1, 90)),
    ]
    known = [each.fact for each in SegmentLedger(batches).known_facts()]
    assert len(known) == 200
    every = [each for one in batches for each in one.facts]
    assert first in required_facts(known)
    assert required_facts(known) == required_facts(every)


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
    """The facts of a pruned segment are gone, so the summary has its gist instead."""
    old = replace(batch(0, gist="The group rents the cabin in Braemar."), pruned=True)
    newer = [
        batch(number, fact(number * 10, f"We bought {number} tents for {number * 7} pounds.")) for number in (1, 2)
    ]
    summary = render_summary([old, *newer])
    assert summary is not None
    assert "The group rents the cabin in Braemar." in summary.text
    (sentence,) = [each for each in summary.sentences if "Braemar" in each.text]
    assert sentence.segment_ids == (old.id,)
    assert sentence.turn_seqs == tuple(range(10))


def paragraph(number: int, text: str) -> Segment:
    """Return a segment that the recursive strategy wrote."""
    return replace(batch(number), summariser="llm recursive.v6", paragraph=text)


def test_newest_paragraph_is_the_summary() -> None:
    """The model's newest paragraph is the whole summary."""
    ledger = SegmentLedger([paragraph(0, "Ada plans a hike. Bob is late.")])
    ledger = ledger.with_segment(paragraph(1, "Ada plans a hike. Cy brings the stove."))
    rendered = ledger.render()
    assert rendered is not None
    assert rendered.text == "Ada plans a hike. Cy brings the stove."
    assert [each.text for each in rendered.sentences] == ["Ada plans a hike.", "Cy brings the stove."]
    assert rendered == render_summary(ledger.segments)


def test_code_makes_the_summary_where_the_newest_fold_has_no_paragraph() -> None:
    """A refused paragraph is not replaced by an older one: the summary is made of the facts."""
    ledger = SegmentLedger(
        [
            replace(batch(0, fact(1, "We leave at nine.")), paragraph="They leave at nine."),
            batch(1, fact(11, "The gate code is 4411.")),
        ]
    )
    rendered = ledger.render()
    assert rendered is not None
    assert rendered.text == 'Ada said: "We leave at nine. The gate code is 4411."'


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
    assert 'Ada said: "We leave at nine on Sunday."' in rendered.text
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


def chapter(level: int, start: int, end: int, *, paragraph: str = "", refs: tuple[str, ...] = ()) -> Chapter:
    """Return a chapter over turns `start <= seq < end`."""
    gist = f"Turns {start} to {end - 1} were about the hike."
    return Chapter(
        ChapterId(f"c{level}-{start}"),
        EVENING,
        level,
        Seq(start),
        Seq(end),
        T0 + start,
        T0 + end - 1,
        gist,
        refs,
        "llm chapter.v5",
        paragraph=paragraph,
    )


def test_eight_closed_parts_make_a_chapter_due() -> None:
    """A chapter is due over eight segments, and a higher one over eight chapters; the highest comes first."""
    segments = [batch(number, fact(number * 10, f"We walked {number} miles.")) for number in range(66)]
    assert SegmentLedger(segments[:7]).chapter_due() is None
    assert SegmentLedger(segments[:8]).chapter_due() == ChapterDue(1, Seq(0), Seq(80), T0, T0 + 79)
    first = [chapter(1, start, start + 80) for start in range(0, 640, 80)]
    assert SegmentLedger(segments, first[:2]).chapter_due() == ChapterDue(1, Seq(160), Seq(240), T0 + 160, T0 + 239)
    assert SegmentLedger(segments, first).chapter_due() == ChapterDue(2, Seq(0), Seq(640), T0, T0 + 639)
    ledger = SegmentLedger(segments, first).with_chapter(chapter(2, 0, 640))
    assert ledger.chapter_due() is None
    assert [each.id for each in ledger.top_chapters] == ["c2-0"]


def test_the_gists_of_the_newest_chapters_stay_while_there_is_room() -> None:
    """A chapter over eight others takes their place in a request only once sixteen chapters tell of later turns."""
    wide = [chapter(2, start, start + 640) for start in (0, 640)]
    fine = [chapter(1, start, start + 80) for start in range(0, 1440, 80)]
    assert [each.id for each in SegmentLedger((), [*fine[:9], wide[0]]).told_chapters] == [each.id for each in fine[:9]]
    told = SegmentLedger((), [*fine, *wide]).told_chapters
    assert [each.id for each in told] == ["c2-0", *(each.id for each in fine[8:])]


def test_a_chapter_request_has_its_parts_with_their_standing_facts() -> None:
    """Each part of a chapter comes with its times, gist and facts that still hold; later segments with their gists."""
    segments = [
        batch(number, fact(number * 10, f"We walked {number} miles."), gist=f"Day {number}.") for number in range(9)
    ]
    segments[3] = replace(segments[3], facts=(replace(segments[3].facts[0], supersedes=("s0#0",)),))
    ledger = SegmentLedger(segments)
    due = ledger.chapter_due()
    assert due is not None
    request = ledger.chapter_request(due)
    assert [part.gist for part in request.parts] == [f"Day {number}." for number in range(8)]
    times = [(part.started_at, part.ended_at) for part in request.parts]
    assert times == [(each.started_at, each.ended_at) for each in segments[:8]]
    assert [len(part.facts) for part in request.parts] == [0, 1, 1, 1, 1, 1, 1, 1]
    assert request.since == ("Day 8.",)


def told(number: int, *, start: int | None = None) -> Segment:
    """Return the segment that landed as this one, with a paragraph; one of notes alone if it is given a `start`."""
    made = replace(batch(number), paragraph=f"Paragraph {number} is here.", created_at=T0 + number)
    return made if start is None else replace(made, start=Seq(start), end=Seq(start))


def test_the_paragraph_of_a_chapter_serves_until_the_next_fold() -> None:
    """A chapter that was made after the newest fold has the newest paragraph, whichever turns it is over."""
    segments = [told(number) for number in range(10)]
    made = replace(chapter(1, 0, 80, paragraph="The chapter's paragraph is here."), created_at=T0 + 8.5)
    before = render_summary(segments[:9], [made])
    after = render_summary(segments, [made])
    assert before is not None
    assert after is not None
    assert before.text == "The chapter's paragraph is here."
    assert after.text == "Paragraph 9 is here."


def test_of_two_chapters_after_a_fold_the_later_one_has_the_newest_paragraph() -> None:
    """A chapter over chapters is made after the last of them, and one whose paragraph failed hides none."""
    segments = [told(number) for number in range(65)]
    fine = [
        replace(chapter(1, start, start + 80, paragraph=f"Chapter {start} is here."), created_at=T0 + 64.1)
        for start in range(0, 640, 80)
    ]
    for paragraph, expected in (("All chapters are here.", "All chapters are here."), ("", "Chapter 0 is here.")):
        above = replace(chapter(2, 0, 640, paragraph=paragraph), created_at=T0 + 64.2)
        summary = render_summary(segments, [*fine, above])
        assert summary is not None
        assert summary.text == expected


def test_notes_that_are_folded_after_a_chapter_are_told() -> None:
    """A segment of notes alone lies at the end of the chapter, and its paragraph is the newer one."""
    segments = [told(number) for number in range(8)]
    made = replace(chapter(1, 0, 80, paragraph="The chapter's paragraph is here."), created_at=T0 + 7.5)
    summary = render_summary([*segments, told(8, start=80)], [made])
    assert summary is not None
    assert summary.text == "Paragraph 8 is here."


def test_a_batch_that_is_made_again_knows_no_later_paragraph() -> None:
    """A chapter over earlier turns may be made later; its paragraph tells what came after, and its gist does not."""
    made = replace(chapter(1, 0, 80, paragraph="The chapter's paragraph is here."), created_at=T0 + 9.5)
    ledger = SegmentLedger([told(number) for number in range(10)], [made])
    before = ledger.before(SegmentId("s9"))
    rendered = before.render()
    assert rendered is not None
    assert rendered.text == "Paragraph 8 is here."
    assert [each.gist for each in before.chapters] == [made.gist]


def test_a_chapter_has_the_notes_that_were_folded_within_its_turns() -> None:
    """A segment of notes alone belongs to the chapter over the turns that follow it, and is told once."""
    seen = replace(fact(40, "On Bob's screen: the map.", FactKind.DOING, speaker="Bob"), note_id=NoteId("n"))
    first, last = (replace(batch(0, seen), id=SegmentId(f"n{at}"), start=Seq(at), end=Seq(at)) for at in (40, 80))
    batches = [batch(number, fact(number * 10, f"We walked {number} miles.")) for number in range(9)]
    ledger = SegmentLedger([*batches[:4], first, *batches[4:8], last, batches[8]])
    due = ledger.chapter_due()
    assert due == ChapterDue(1, Seq(0), Seq(80), T0, T0 + 79)
    request = ledger.chapter_request(due)
    assert [(part.start, part.end) for part in request.parts][3:6] == [(30, 40), (40, 40), (40, 50)]
    assert [each.fact.text for each in request.parts[4].facts] == ["On Bob's screen: the map."]
    assert len(request.parts) == 9
    assert len(request.since) == 2


def test_parts_between_two_chapters_become_a_shorter_one() -> None:
    """No part stays without a chapter for ever, and until then the summary tells it in its place."""
    segments = [batch(number, fact(number * 10, f"Day {number} was for walking to Oslo.")) for number in range(19)]
    ledger = SegmentLedger(segments, [chapter(1, 0, 80), chapter(1, 100, 180)])
    assert ledger.chapter_due() == ChapterDue(1, Seq(80), Seq(100), T0 + 80, T0 + 99)
    summary = ledger.render()
    assert summary is not None
    assert "Day 8 was for walking to Oslo." in summary.text
    wide = [chapter(1, start, start + 80) for start in range(100, 740, 80)]
    whole = SegmentLedger((), [chapter(1, 0, 80), chapter(1, 80, 100), *wide])
    assert whole.chapter_due() == ChapterDue(2, Seq(0), Seq(580), T0, T0 + 579)
    above = SegmentLedger((), [chapter(1, 0, 80), chapter(1, 80, 100), *wide, chapter(2, 100, 740)])
    assert above.chapter_due() == ChapterDue(2, Seq(0), Seq(100), T0, T0 + 99)


def test_labels_name_facts_by_their_turn() -> None:
    """A fact's label is its first turn, with a letter if the turn has several facts."""
    ledger = SegmentLedger([batch(0, fact(1, "The code is 4411."), fact(1, "We leave."), fact(2, "Bob drives."))])
    assert [known.label for known in ledger.known_facts()] == ["1", "1b", "2"]
