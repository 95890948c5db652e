"""Facts that people state about themselves: extracted by rules, replaced by later ones, rendered within a budget."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compaction.language.wording import words
from compaction.memory.people import (
    HEAD,
    MAX_FACTS_PER_BATCH,
    ExtractedFacts,
    PersonFact,
    extract_person_facts,
    merge_facts,
    participants_part,
    person_facts_part,
)
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import PartKind
from compaction.untrusted_text import without_marks

NOW = 1_760_000_000.0
EVENING = SessionId("evening")


def turn(seq: int, text: str, speaker: str = "Ada", *, kind: TurnKind = TurnKind.SPEECH) -> Turn:
    return Turn(Seq(seq), kind, NOW + seq, NOW + seq + 1, (TurnPart(f"id-{speaker}", speaker, text),))


def drawn(*texts: str, speaker: str = "Ada", session: str = "evening", start: int = 0) -> ExtractedFacts:
    return extract_person_facts(
        [turn(start + index, text, speaker) for index, text in enumerate(texts)], session_id=SessionId(session)
    )


def held(known: tuple[PersonFact, ...]) -> dict[str, str]:
    return {fact.topic: fact.value for fact in known if fact.is_current}


def known_after(*batches: ExtractedFacts) -> tuple[PersonFact, ...]:
    """Return the facts that a store would keep after these batches."""
    kept: dict[str, PersonFact] = {}
    for batch in batches:
        settled = merge_facts(batch, kept.values())
        for fact in (*settled.added, *settled.superseded):
            kept[fact.id] = fact
    return tuple(kept.values())


@pytest.mark.parametrize(
    ("said", "topic", "value", "text"),
    [
        ("So yeah, I live in Lisbon these days.", "home", "Lisbon", "I live in Lisbon."),
        ("My dog is called Bruno, he's great.", "dog's name", "Bruno", "My dog is called Bruno."),
        ("I prefer tea to coffee, honestly.", "preference", "tea to coffee", "I prefer tea to coffee."),
        ("I've just moved to Berlin!", "home", "Berlin", "I've just moved to Berlin."),
        ("I'm allergic to walnuts.", "allergy to walnuts", "walnuts", "I'm allergic to walnuts."),
        ("I have a peanut allergy.", "allergy to peanut", "peanut", "I have a peanut allergy."),
        ("I'm a nurse.", "occupation", "nurse", "I'm a nurse."),
        ("I work at the harbour office.", "workplace", "the harbour office", "I work at the harbour office."),
        ("You can call me Al.", "name", "Al", "You can call me Al."),
        ("My favourite colour is green.", "favourite colour", "green", "My favourite colour is green."),
        ("I'm 34 years old.", "age", "34", "I'm 34 years old."),
        ("I have two kids.", "has kid", "two kids", "I have two kids."),
        ("I play the cello.", "plays cello", "cello", "I play the cello."),
        ("My sister lives in Leeds.", "sister's home", "Leeds", "My sister lives in Leeds."),
        ("I don't eat fish.", "doesn't take fish", "fish", "I don't eat fish."),
    ],
)
def test_a_durable_statement_is_drawn_in_the_speakers_words(said: str, topic: str, value: str, text: str) -> None:
    """A lasting statement becomes a fact in the speaker's own words, with its topic, value, speaker, turn
    and session.
    """
    (fact,) = drawn(said).facts
    assert (fact.topic, fact.value, fact.text) == (topic, value, text)
    assert (fact.person_id, fact.name, fact.turn_seq, fact.session_id) == ("id-Ada", "Ada", 0, EVENING)


@pytest.mark.parametrize(
    "said",
    [
        "Do you think I live in Lisbon?",
        "I wish I lived in Lisbon.",
        "She said I live in Lisbon.",
        "If I live in Lisbon, I need a car.",
        "I used to live in Rome.",
        "In the game I live in a castle.",
        "I moved to the left.",
        "I work in the evening.",
        "I'm a bit tired.",
        "I love this song.",
        "I hate it when that happens.",
        "Call me later.",
        "My birthday is tomorrow.",
        "I can't eat any more.",
        "You live in Lisbon.",
        "Haha, yeah.",
        "I play the healer.",
    ],
)
def test_what_is_asked_wished_supposed_or_passing_is_left_alone(said: str) -> None:
    """Questions, wishes, suppositions and passing remarks give no facts, because a wrong fact about a person is worse
    than none.
    """
    assert drawn(said) == ExtractedFacts()


def test_the_bot_and_the_forgotten_say_nothing_of_themselves() -> None:
    """Facts come only from turns of people that are not forgotten."""
    said = turn(0, "I live in Lisbon.")
    for other in (replace(said, kind=TurnKind.ASSISTANT), replace(said, tombstone=True, parts=())):
        assert extract_person_facts([other], session_id=EVENING) == ExtractedFacts()


def test_of_a_batch_the_four_weightiest_are_drawn() -> None:
    """Of each batch the four most important facts are kept, in the order of talk."""
    batch = drawn(
        "I love jazz.", "I live in Lisbon.", "I'm vegan.", "I hate mushrooms.", "My name is Ada Lovell.", "I'm a nurse."
    )
    assert len(batch.facts) == MAX_FACTS_PER_BATCH
    assert [fact.topic for fact in batch.facts] == ["home", "diet", "name", "occupation"]


def test_a_new_value_supersedes_the_old_and_keeps_it_as_history() -> None:
    """A new value supersedes the old one, also across sessions. The old fact records what replaced it, and when."""
    known = known_after(
        drawn("I live in Lisbon."),
        drawn("I've just moved to Berlin.", session="later", start=100),
    )
    assert held(known) == {"home": "Berlin"}
    (old,) = [fact for fact in known if not fact.is_current]
    assert (old.value, old.superseded_by, old.superseded_at) == ("Lisbon", "later#100.0", NOW + 100)


def test_said_again_it_changes_nothing() -> None:
    """Repeating a value in other words, or processing a batch twice, changes nothing."""
    once = drawn("I live in Lisbon.")
    known = known_after(once, once, drawn("Well, I live in lisbon.", start=50))
    assert len(known) == 1


def test_what_was_said_before_does_not_replace_what_was_said_after() -> None:
    """If a batch is processed late, its facts do not replace facts that were said after it."""
    known = known_after(drawn("I live in Berlin.", start=100), drawn("I live in Lisbon.", start=10))
    assert held(known) == {"home": "Berlin"}


def test_people_do_not_contradict_each_other() -> None:
    """A fact about one person never replaces a fact about another."""
    known = known_after(drawn("I live in Lisbon."), drawn("I live in Berlin.", speaker="Bob", start=5))
    assert len([fact for fact in known if fact.is_current]) == 2


def test_preferences_replace_those_of_their_sort() -> None:
    """A preference replaces only preferences of the same sort: coffee replaces tea, but not window seats."""
    known = known_after(
        drawn("I prefer tea."), drawn("I prefer window seats.", start=20), drawn("I prefer coffee now.", start=40)
    )
    assert {fact.value for fact in known if fact.is_current} == {"window seats", "coffee"}


def test_what_is_taken_back_holds_no_longer() -> None:
    """A statement that is taken back is no longer current, even without a new value. Statements that are not mentioned
    stay.
    """
    first = drawn("I live in Lisbon.", "I'm vegan.")
    assert held(known_after(first, drawn("I don't live in Lisbon any more.", start=30))) == {"diet": "vegan"}
    assert held(known_after(first, drawn("I don't live in Paris any more.", start=30))) == held(known_after(first))


def test_the_section_tells_everybodys_first_before_anybodys_second() -> None:
    """The section lists each person's first fact before anybody's second one, under current names and within its
    budget.
    """
    known = known_after(drawn("I live in Lisbon.", "I love jazz."), drawn("I'm a nurse.", speaker="Bob", start=20))
    present = [("id-Ada", "Ada L."), ("id-Bob", "Bob"), ("id-Cy", "Cy")]
    whole = participants_part(present, known, max_tokens=200, most_each=4)
    assert whole is not None
    assert without_marks(whole.content) == f"{HEAD}\nAda L.: I live in Lisbon. I love jazz.\nBob: I'm a nurse."
    assert whole.kind is PartKind.PARTICIPANTS
    assert len(whole.refs) == 3
    less = participants_part(present, known, max_tokens=whole.tokens - 1, most_each=4)
    assert less is not None
    assert without_marks(less.content) == f"{HEAD}\nAda L.: I live in Lisbon.\nBob: I'm a nurse."
    assert participants_part([("id-Cy", "Cy")], known, max_tokens=200, most_each=4) is None
    assert participants_part(present, known, max_tokens=5, most_each=4) is None
    by_id = {fact.id: fact for fact in known}
    assert person_facts_part([by_id[ref] for ref in whole.refs], dict(present)) == whole


SAYINGS = (
    "I live in Lisbon.",
    "I live in Berlin.",
    "I prefer tea.",
    "I prefer coffee.",
    "I'm vegan.",
    "I don't live in Lisbon any more.",
    "I'm not vegan any more.",
    "My dog is called Bruno.",
    "My dog is called Rex.",
    "Haha.",
)


# Berlin is said twice and then superseded by Lisbon, which is taken back. When the batches are processed again, there
# is no other value left to supersede the second Berlin.
@pytest.mark.slow
@example(
    [
        [("I live in Berlin.", "Ada")],
        [("I live in Berlin.", "Ada")],
        [("I live in Lisbon.", "Ada"), ("I don't live in Lisbon any more.", "Ada")],
    ]
)
@settings(max_examples=300)
@given(st.lists(st.lists(st.tuples(st.sampled_from(SAYINGS), st.sampled_from(["Ada", "Bob"])), max_size=6), max_size=6))
def test_at_most_one_value_holds_and_nothing_is_lost(batches: list[list[tuple[str, str]]]) -> None:
    """After any statements in any order, each person has at most one current value for a topic, and each superseded
    fact has the time at which it was replaced.
    """
    made: list[ExtractedFacts] = []
    seq = 0
    for batch in batches:
        turns = [turn(seq + index, text, who) for index, (text, who) in enumerate(batch)]
        seq += len(turns)
        made.append(extract_person_facts(turns, session_id=EVENING))
    known = known_after(*made)
    holding = [(fact.person_id, fact.topic) for fact in known if fact.is_current]
    assert len(holding) == len(set(holding))
    for fact in known:
        assert (fact.superseded_by is None) == (fact.superseded_at is None)
        assert fact.superseded_at is None or fact.superseded_at >= fact.at
    again = known_after(*made, *made)
    assert {fact.id for fact in again if fact.is_current} == {fact.id for fact in known if fact.is_current}


@given(st.text(max_size=300))
def test_nothing_is_drawn_that_was_not_said(text: str) -> None:
    """Every word of a fact stands in its turn, for any text."""
    for fact in drawn(text).facts:
        assert set(words(fact.text)) <= set(words(text))
