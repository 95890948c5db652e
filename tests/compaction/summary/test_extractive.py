"""The extractor keeps lasting statements word for word with their speaker, and always gives the same result."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.languages import LANGUAGES
from compaction.language.text import ends_a_sentence
from compaction.model import FactKind, Seq, Turn, TurnKind, TurnPart
from compaction.summary.extractive import FACTS_CHARS, ExtractiveSummariser, extract_facts, make_gist
from compaction.summary.ledger import SegmentLedger
from compaction.summary.port import MAX_FACT_CHARS, MAX_FACTS, MAX_GIST_CHARS, Fold, FoldRequest, KnownFact
from compaction.summary.segments import make_segment
from compaction.summary.subjects import subjects_sentence
from tests.compaction.memory.corrected_statements import (
    CONTRADICTED,
    CONTRADICTED_APART,
    DENIED,
    DENIED_APART,
    NOT_CONTRADICTED,
    NOT_CONTRADICTED_APART,
    NOT_DENIED,
    NOT_DENIED_APART,
    OTHER_THING,
)
from tests.compaction.summary.statements_alike import CASES, AlikeCase
from tests.compaction.turn_store_contract import EVENING, T0, bot_turn, note, turn

BATCH = (
    turn(0, "Hello there! Haha, okay."),
    turn(1, "We decided to rent the cabin in Braemar.", speaker="Bob"),
    turn(2, "Yeah, totally."),
    turn(3, "It costs 450 pounds for the weekend. Nice weather, isn't it?", speaker="Cy"),
    turn(4, "I'm allergic to walnuts, by the way."),
    turn(5, "lol"),
    turn(6, "Who brings the tent?", speaker="Bob"),
)


def texts(turns: tuple[Turn, ...], known: tuple[KnownFact, ...] = ()) -> list[str]:
    return [fact.attributed_text for fact in extract_facts(turns, start=Seq(0), known=known)]


def test_what_lasts_is_kept_and_filler_is_not() -> None:
    """Decisions, prices, allergies and open questions are kept. Greetings, laughter and agreement are dropped."""
    assert texts(BATCH) == [
        "Bob: We decided to rent the cabin in Braemar.",
        "Cy: It costs 450 pounds for the weekend.",
        "Ada: I'm allergic to walnuts, by the way.",
        "Bob: Who brings the tent?",
    ]


def test_facts_know_their_turn_speaker_time_and_slot() -> None:
    """A fact has the turn number, speaker, time and slot of its turn."""
    facts = {fact.turn_seq: fact for fact in extract_facts(BATCH, start=Seq(0))}
    cabin = facts[Seq(1)]
    assert (cabin.speaker, cabin.at, cabin.kind) == ("Bob", T0 + 3.0, FactKind.DECISION)
    assert facts[Seq(4)].kind is FactKind.LASTING
    assert facts[Seq(6)].kind is FactKind.OPEN


def test_each_part_of_a_turn_is_its_speakers() -> None:
    """In a turn of several speakers each sentence is attributed to the person who said it."""
    both = Turn(
        Seq(0),
        TurnKind.SPEECH,
        T0,
        T0 + 5.0,
        (TurnPart("1", "Ada", "I live in Leeds."), TurnPart("2", "Bob", "I work in Hull.")),
    )
    assert texts((both,)) == ["Ada: I live in Leeds.", "Bob: I work in Hull."]


def test_joining_counts_and_effects_do_not() -> None:
    """A membership turn gives an unimportant fact about the person, and a sound effect gives no fact."""
    joined = Turn(Seq(0), TurnKind.MEMBERSHIP, T0, T0, (TurnPart("3", "Cy", "Cy joined the voice channel."),))
    sound = Turn(Seq(1), TurnKind.EFFECT, T0, T0, (TurnPart("3", "Cy", "played the airhorn sound effect"),))
    (fact,) = extract_facts((joined, sound), start=Seq(0))
    assert (fact.kind, fact.turn_seq, fact.importance, fact.subject) == (FactKind.OTHER, 0, 1, "Cy")


def test_within_a_batch_only_the_correction_stays() -> None:
    """If a batch has a statement and its correction, only the correction is kept."""
    turns = (turn(0, "The gate code is 4411."), turn(1, "Actually the gate code is 7023."))
    assert texts(turns) == ["Ada: Actually the gate code is 7023."]


def _kept(case: AlikeCase) -> frozenset[int]:
    """Return the places of the statements of a case that are facts of one batch."""
    turns = []
    for seq, said in enumerate(case.said):
        speaker, _, text = said.rpartition(": ")
        turns.append(turn(seq, text, speaker=speaker or "Ada"))
    return frozenset(fact.turn_seq for fact in extract_facts(turns, start=Seq(0)))


# The later word of a person wins over the one that it contradicts, though here both may hold.
_LATER_WORDS = frozenset({"I eat meat at my grandmother's on Sundays.", "I drink coffee in the office with my boss."})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.said[-1])
def test_only_what_another_statement_says_wholly_goes(case: AlikeCase) -> None:
    """Of two statements of a person that begin alike the longer stays. Others are both facts, whatever they share."""
    kept = _kept(case)
    if case.said[-1] in _LATER_WORDS:
        assert kept == {1}
        return
    assert case.stays <= kept
    assert kept.isdisjoint(case.goes)


@pytest.mark.parametrize(("old", "new"), OTHER_THING)
def test_value_of_another_thing_leaves_the_first_one(old: str, new: str) -> None:
    """A person's locker code stays when the code of their bike lock changes, within a batch and in a later one."""
    assert {fact.turn_seq for fact in extract_facts((turn(0, old), turn(1, new)), start=Seq(0))} == {0, 1}
    (before,) = extract_facts((turn(0, old),), start=Seq(0))
    (after,) = extract_facts((turn(20, new),), start=Seq(20), known=(KnownFact("s#0", before),))
    assert after.supersedes == ()


def test_correction_of_an_earlier_batch_supersedes_it() -> None:
    """A correction of an earlier batch names the fact that it replaces, and the summary has only the new value."""
    ledger = SegmentLedger()
    for start, said in (
        (0, "The gate code is 4411."),
        (10, "The gate code changed to 7023."),
        (20, "We ate soup today."),
    ):
        turns = (turn(start, said),)
        facts = extract_facts(turns, start=Seq(start), known=ledger.known_facts())
        request = FoldRequest(Seq(start), turns, (), None)
        fold = Fold(make_gist(facts, turns), facts)
        ledger.add(
            make_segment(request, fold, session_id=EVENING, revision=0, summariser="extractive", degraded=False, at=T0)
        )
    assert ledger.segments[1].facts[0].supersedes == ("evening:0-1#0",)
    summary = ledger.render()
    assert summary is not None
    assert "4411" not in summary.text
    assert "7023" in summary.text
    assert "soup" in summary.text


def test_bare_answer_takes_its_question_along() -> None:
    """A bare answer such as 'It's 450 pounds' is one fact of two turns with its question."""
    turns = (
        turn(0, "So, how much is the cabin?"),
        turn(1, "Well, it's 450 pounds for the weekend.", speaker="Bob"),
        turn(2, "No idea, ask Cy."),
    )
    (fact,) = extract_facts(turns, start=Seq(0))
    assert fact.attributed_text == "Ada: How much is the cabin? Bob: It's 450 pounds for the weekend."
    assert fact.turns == (0, 1)


def test_unrelated_statement_leaves_the_question_open() -> None:
    """A statement that stands alone is no answer, so the question before it stays open."""
    turns = (turn(0, "Who has the map?"), turn(1, "I own two cats.", speaker="Bob"))
    assert texts(turns) == ["Ada: Who has the map?", "Bob: I own two cats."]


def test_bare_answer_corrects_what_its_question_repeats() -> None:
    """A bare answer corrects an earlier fact if its question repeats the subject and value of that fact."""
    (before,) = extract_facts((turn(0, "Okay so the raid is on Monday, put it in your calendars."),), start=Seq(0))
    known = (KnownFact("s0#0", before),)
    turns = (turn(1, "The raid is still on Monday, right?", speaker="Bob"), turn(2, "No no, Friday now."))
    (after,) = extract_facts(turns, start=Seq(1), known=known)
    assert after.supersedes == ("s0#0",)


def test_bare_correction_takes_a_statement_along_and_replaces_it() -> None:
    """Within a batch, a correction without a subject is one fact with the statement that it replaces."""
    turns = (turn(0, "We meet at eight at the station."), turn(1, "Haha."), turn(2, "Actually, make that nine."))
    assert texts(turns) == ["Ada: We meet at eight at the station. Actually, make that nine."]


def test_what_a_correction_is_about_may_stand_before_its_batch() -> None:
    """A correction may refer to a turn before its batch. Such turns are read, but they give no facts."""
    asked = turn(9, "So the raid is still on Monday, right?", speaker="Bob")
    (fact,) = extract_facts((turn(0, "Okay so the raid is on Monday, put it in your calendars."),), start=Seq(0))
    (question,) = extract_facts((asked,), start=Seq(9))
    known = (KnownFact("s0#0", fact), KnownFact("s0#1", question))
    (after,) = extract_facts((turn(10, "No, it is Sunday now."),), start=Seq(10), known=known, before=(asked,))
    assert after.attributed_text == "Bob: So the raid is still on Monday, right? Ada: No, it is Sunday now."
    assert after.supersedes == ("s0#0", "s0#1"), "the fact, and the question that was told as open"


def test_preambles_go() -> None:
    """Filler at the beginning of a sentence is removed, because it takes space and says nothing."""
    assert texts((turn(0, "Right, listen, um, the gate code is 4411."),)) == ["Ada: The gate code is 4411."]


def test_notes_are_told_with_whose_screen() -> None:
    """A fact from a note names whose screen it was, keeps the note's id and belongs to no turn."""
    facts = extract_facts(BATCH, (note("n1"), note("n2")), start=Seq(0))
    seen = [fact for fact in facts if fact.note_id is not None]
    assert [fact.note_id for fact in seen] == ["n1", "n2"]
    assert all(fact.attributed_text.startswith("On Bob's screen: ") for fact in seen)


def test_notes_alone_can_be_folded() -> None:
    """If a run has only notes, their facts have the cursor as their turn number."""
    facts = extract_facts((), (note("n1"),), start=Seq(40))
    assert [(fact.turn_seq, fact.note_id) for fact in facts] == [(40, "n1")]


def test_nothing_worth_keeping_is_said_so() -> None:
    """A batch with nothing worth keeping has no facts, but still has a gist."""
    turns = (turn(0, "Haha."), turn(1, "lol", speaker="Bob"))
    assert extract_facts(turns, start=Seq(0)) == ()
    assert make_gist((), turns) == "Ada, Bob talked; nothing in it needs keeping."
    assert make_gist((), ()) == "Nothing was said."


def test_long_unpunctuated_turn_is_cut_into_whole_clauses() -> None:
    """A long turn without punctuation gives whole clauses from all of it, and no half ones."""
    told = (
        "we met the smith in Zadash and he sold us the silver key but the key did not fit the blue door so Nott picked "
        "the lock while Beau kept watch and behind the door was a map of the mines and then the guards came so we ran "
        "to the river because Caleb had hidden a boat there and the boat was gone so we swam to the other side"
    )
    kept = [fact.text for fact in extract_facts((turn(0, told),), start=Seq(0))]
    assert any("smith in Zadash" in each for each in kept)
    assert any("boat was gone" in each for each in kept)
    assert all(len(each) <= MAX_FACT_CHARS for each in kept)


def test_a_title_is_no_subject() -> None:
    """After 'Mrs' a full stop ends no sentence, so what follows would be taken for a name."""
    counts = Counter({"Mrs": 5, "Mr": 3, "Lisbon": 2})
    assert subjects_sentence(counts, language=LANGUAGES[0], max_chars=200) == "They talked about Lisbon."


def test_half_a_sentence_is_never_kept() -> None:
    """A sentence that is too long and has no clauses is not kept at all, because half of it may say something else."""
    assert extract_facts((turn(0, "I'm married to my " + "very " * 60 + "demanding job."),), start=Seq(0)) == ()
    assert texts((turn(0, "I'm married to my job."),)) == ["Ada: I'm married to my job."]


def test_bot_is_kept_only_for_what_nobody_said() -> None:
    """The bot's sentences become facts if they say something definite that no person had said."""
    said = turn(0, "I will bring the lemonade and two loaves of fresh bread.", speaker="Ben")
    quotation = bot_turn(1, "Just now, Ben said: I will bring the lemonade and two loaves of fresh bread.")
    news = bot_turn(2, "The invoice of 90 euros is due on Tuesday.")
    assert texts((said, quotation, news)) == [
        "Ben: I will bring the lemonade and two loaves of fresh bread.",
        "Roomtone: The invoice of 90 euros is due on Tuesday.",
    ]
    assert texts((bot_turn(0, "I have heard nothing about that here, Chloe."),)) == []
    assert texts((bot_turn(0, "Dazu wurde hier nichts gesagt, Chloe."),)) == []
    assert texts((bot_turn(0, "Vor etwa 5 Minuten sagte Ben: Ich bringe zwei Brote mit."),)) == []


def test_bot_corrects_nobody_but_itself() -> None:
    """A statement of the bot takes the place of no person's fact."""
    (code,) = extract_facts((turn(0, "The gate code is 7023."),), start=Seq(0))
    (wrong,) = extract_facts(
        (bot_turn(1, "Actually the gate code is 4411."),), start=Seq(1), known=(KnownFact("s#0", code),)
    )
    assert wrong.supersedes == ()


def test_german_batch_is_kept_like_an_english_one() -> None:
    """A German batch keeps what lasts, drops chatter, and follows a correction."""
    turns = (
        turn(0, "Hallo zusammen! Hört ihr mich jetzt?"),
        turn(1, "Ich bin allergisch gegen Walnüsse.", speaker="Bob"),
        turn(2, "Das Treffen ist am Donnerstag um neun."),
        turn(3, "Das Treffen ist jetzt doch am Freitag."),
        turn(4, "Ich bin nicht allergisch gegen Walnüsse.", speaker="Cy"),
    )
    assert texts(turns) == [
        "Bob: Ich bin allergisch gegen Walnüsse.",
        "Ada: Das Treffen ist jetzt doch am Freitag.",
        "Cy: Ich bin nicht allergisch gegen Walnüsse.",
    ]


def test_scripts_without_spaces_are_kept() -> None:
    """Sentences of a script without spaces are kept, with digits or without."""
    assert texts((turn(0, "我对花生过敏。我们星期五去柏林看比赛。"),)) != []


def test_summariser_gives_the_same() -> None:
    """The summariser of the port gives the same facts as `extract_facts` and uses no tokens."""
    summariser = ExtractiveSummariser()
    fold = asyncio.run(summariser.fold(FoldRequest(Seq(0), BATCH, (), None)))
    assert fold.facts == extract_facts(BATCH, start=Seq(0))
    assert fold.gist
    assert (summariser.name, summariser.model, fold.prompt_tokens) == ("extractive", "", None)


_said = st.lists(
    st.tuples(
        st.sampled_from(["Ada", "Bob", "Cy"]),
        st.one_of(st.text(max_size=200), st.sampled_from([part.text for each in BATCH for part in each.parts])),
    ),
    max_size=30,
)


@given(_said)
def test_any_talk_makes_a_bounded_segment(said: list[tuple[str, str]]) -> None:
    """For any talk the facts and the gist keep their limits, every fact is a sentence of its turn's speaker, and the
    result is always the same.
    """
    turns = tuple(turn(seq, text, speaker=speaker) for seq, (speaker, text) in enumerate(said))
    facts = extract_facts(turns, start=Seq(0))
    assert len(facts) <= MAX_FACTS
    assert sum(len(fact.attributed_text) + 1 for fact in facts) <= FACTS_CHARS
    for fact in facts:
        assert fact.speaker == turns[fact.turn_seq].parts[0].speaker
        assert len(fact.text) <= MAX_FACT_CHARS
        assert ends_a_sentence(fact.text)
    gist = make_gist(facts, turns)
    assert 0 < len(gist) <= MAX_GIST_CHARS
    assert ends_a_sentence(gist)
    assert extract_facts(turns, start=Seq(0)) == facts


@pytest.mark.parametrize(
    ("old", "question", "answer"), [each[:3] for each in (*DENIED, *DENIED_APART, *CONTRADICTED, *CONTRADICTED_APART)]
)
def test_an_answer_that_says_no_takes_the_place_of_the_old_value(old: str, question: str, answer: str) -> None:
    """Whoever told the old value in an earlier batch, and whether somebody asks or states it again."""
    assert _supersedes(old, question, answer)


@pytest.mark.parametrize(
    ("old", "question", "answer"),
    [each[:3] for each in (*NOT_DENIED, *NOT_DENIED_APART, *NOT_CONTRADICTED, *NOT_CONTRADICTED_APART)],
)
def test_an_answer_that_says_no_to_another_thing_leaves_the_old_value(old: str, question: str, answer: str) -> None:
    """The question is about another thing, or nothing is denied."""
    assert not _supersedes(old, question, answer)


def _supersedes(old: str, question: str, answer: str) -> bool:
    """Return whether the facts of two turns supersede the fact of an earlier batch, said by a third person."""
    (told,) = extract_facts((turn(3, old, speaker="Dan"),), start=Seq(3))
    talk = (turn(40, question, speaker="Bob"), turn(41, answer, speaker="Carla"))
    facts = extract_facts(talk, start=Seq(40), known=(KnownFact("evening:0#0", told),))
    return any("evening:0#0" in each.supersedes for each in facts)
