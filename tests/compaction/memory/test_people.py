"""Facts that people state about themselves: taken from segments, ended by later ones, rendered within a budget."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

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
from compaction.model import Fact, FactKind, Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import PartKind
from compaction.summary.extractive import extract_facts
from compaction.summary.port import KnownFact
from compaction.untrusted_text import without_marks

NOW = 1_760_000_000.0


def turn(seq: int, text: str, speaker: str = "Ada", *, kind: TurnKind = TurnKind.SPEECH) -> Turn:
    return Turn(Seq(seq), kind, NOW + seq, NOW + seq + 1, (TurnPart(f"id-{speaker}", speaker, text),))


def drawn(*texts: str, speaker: str = "Ada", session: str = "evening", start: int = 0) -> ExtractedFacts:
    """Return the facts about people of a batch in which one person says these texts."""
    return extracted([turn(start + index, text, speaker) for index, text in enumerate(texts)], session)


def extracted(turns: list[Turn], session: str = "evening") -> ExtractedFacts:
    facts = extract_facts(turns, start=turns[0].seq) if turns else ()
    first = turns[0].seq if turns else 0
    known = [KnownFact(f"{session}:{first}#{index}", fact) for index, fact in enumerate(facts)]
    return extract_person_facts(known, turns, session_id=SessionId(session))


def held(known: tuple[PersonFact, ...]) -> list[str]:
    return [fact.text for fact in known if fact.is_current]


def known_after(*batches: ExtractedFacts) -> tuple[PersonFact, ...]:
    """Return the facts that a store would keep after these batches."""
    kept: dict[str, PersonFact] = {}
    for batch in batches:
        settled = merge_facts(batch, kept.values())
        for fact in (*settled.added, *settled.superseded):
            kept[fact.id] = fact
    return tuple(kept.values())


def test_only_what_people_say_of_their_own_lives_is_taken() -> None:
    """Facts about somebody else, questions, plans, chatter and the bot's words are no facts about a person."""
    assert [fact.text for fact in drawn("I'm allergic to walnuts.", "My sister lives in Graz.").facts] == [
        "I'm allergic to walnuts.",
        "My sister lives in Graz.",
    ]
    assert drawn("Do I live in Lisbon?", "The raid is on Friday.", "Can you hear me now?").facts == ()
    assert extracted([turn(0, "I live in Lisbon.", kind=TurnKind.ASSISTANT)]) == ExtractedFacts()


def test_sentence_is_whole() -> None:
    """A fact is the whole sentence, because a part of it may be false."""
    (fact,) = drawn("I'm married to my job.").facts
    assert fact.text == "I'm married to my job."


def test_german_facts_are_taken() -> None:
    """Facts in German are taken as those in English are."""
    assert [fact.text for fact in drawn("Ich wohne in Bremen.").facts] == ["Ich wohne in Bremen."]


def test_batch_gives_its_most_important_facts() -> None:
    """A batch gives at most four facts, the most important first."""
    kept = drawn(
        "I love jazz.", "I hate rain.", "I live in Graz.", "I'm allergic to nuts.", "I have a dog.", "I own a car."
    )
    assert len(kept.facts) == MAX_FACTS_PER_BATCH
    assert "I'm allergic to nuts." in [fact.text for fact in kept.facts]


def test_models_fact_that_supersedes_ends_a_fact_of_that_person_alone() -> None:
    """A fact that supersedes another ends it if the same person said it."""
    known = known_after(drawn("I live in Lisbon."))
    moved = Fact((Seq(20),), FactKind.OTHER, "Ada", NOW + 20, "Ada left Lisbon.", (known[0].id,), quoted=False)
    by_ada = extract_person_facts(
        [KnownFact("evening:20#0", moved)], [turn(20, "I left.")], session_id=SessionId("evening")
    )
    assert held(known_after(drawn("I live in Lisbon."), by_ada)) == []
    said_by_bob = Fact((Seq(20),), FactKind.OTHER, "Bob", NOW + 20, "Ada left Lisbon.", (known[0].id,), quoted=False)
    by_bob = extract_person_facts(
        [KnownFact("evening:20#0", said_by_bob)], [turn(20, "She left.", "Bob")], session_id=SessionId("evening")
    )
    assert held(known_after(drawn("I live in Lisbon."), by_bob)) == ["I live in Lisbon."]


def test_fact_that_was_told_again_ends_with_what_is_superseded() -> None:
    """What was told in two sessions is kept once, as it was told first. If it is superseded as it was told later, the
    kept one ends; nobody else's does.
    """
    told = Fact((Seq(0),), FactKind.LASTING, "Ada", NOW, "I live in Lisbon.", subject="Ada")
    old = KnownFact("evening:0#0", told)
    twice = (drawn("I live in Lisbon.", session="first"), drawn("I live in Lisbon."))
    assert [fact.id for fact in known_after(*twice)] == ["first:0#0"]

    def moved(speaker: str) -> ExtractedFacts:
        says = Fact((Seq(20),), FactKind.OTHER, speaker, NOW + 20, "Ada left Lisbon.", (old.ref,), quoted=False)
        return extract_person_facts(
            [KnownFact("evening:20#0", says)],
            [turn(20, "Gone.", speaker)],
            session_id=SessionId("evening"),
            superseded={old.ref: old.fact},
        )

    assert held(known_after(*twice, moved("Ada"))) == []
    bobs = drawn("I live in Lisbon.", speaker="Bob", session="other")
    assert held(known_after(*twice, bobs, moved("Bob"))) == ["I live in Lisbon.", "I live in Lisbon."]


def test_later_word_takes_the_place_of_an_earlier_one() -> None:
    """A person's later word about the same thing is the one that holds, and the earlier one is kept as history."""
    known = known_after(drawn("I'm allergic to nuts."), drawn("I'm not allergic to nuts.", session="later", start=50))
    assert held(known) == ["I'm not allergic to nuts."]
    assert [fact.superseded_by for fact in known] == ["later:50#0", None]


def test_what_was_said_before_does_not_replace_what_was_said_after() -> None:
    """If a batch is processed late, its facts do not replace facts that were said after it."""
    known = known_after(drawn("I'm not allergic to nuts.", start=100), drawn("I'm allergic to nuts.", start=10))
    assert held(known) == ["I'm not allergic to nuts."]


def test_the_same_again_changes_nothing() -> None:
    """A fact that is said again, or a batch that is processed again, changes nothing."""
    once = drawn("I live in Lisbon.")
    assert len(known_after(once, once, drawn("I live in lisbon!", start=50))) == 1


def test_people_do_not_contradict_each_other() -> None:
    """A fact about one person never replaces a fact about another."""
    known = known_after(drawn("I'm allergic to nuts."), drawn("I'm not allergic to nuts.", speaker="Bob", start=5))
    assert len(held(known)) == 2


def test_the_section_tells_everybodys_first_before_anybodys_second() -> None:
    """The section lists each person's first fact before anybody's second one, under current names and within its
    budget.
    """
    known = known_after(
        drawn("I live in Lisbon.", "I love jazz."), drawn("My job is nursing.", speaker="Bob", start=20)
    )
    present = [("id-Ada", "Ada L."), ("id-Bob", "Bob"), ("id-Cy", "Cy")]
    whole = participants_part(present, known, max_tokens=200, most_each=4)
    assert whole is not None
    assert without_marks(whole.content) == f"{HEAD}\nAda L.: I love jazz. I live in Lisbon.\nBob: My job is nursing."
    assert whole.kind is PartKind.PARTICIPANTS
    assert len(whole.refs) == 3
    less = participants_part(present, known, max_tokens=whole.tokens - 1, most_each=4)
    assert less is not None
    assert without_marks(less.content) == f"{HEAD}\nAda L.: I love jazz.\nBob: My job is nursing."
    assert participants_part([("id-Cy", "Cy")], known, max_tokens=200, most_each=4) is None
    assert participants_part(present, known, max_tokens=5, most_each=4) is None
    by_id = {fact.id: fact for fact in known}
    assert person_facts_part([by_id[ref] for ref in whole.refs], dict(present)) == whole


SAYINGS = (
    "I live in Lisbon.",
    "I live in Berlin now.",
    "I'm vegan.",
    "I'm not vegan any more.",
    "My dog is called Bruno.",
    "Haha.",
)


@settings(max_examples=100)
@given(st.lists(st.lists(st.tuples(st.sampled_from(SAYINGS), st.sampled_from(["Ada", "Bob"])), max_size=6), max_size=6))
def test_nothing_is_lost(batches: list[list[tuple[str, str]]]) -> None:
    """After any statements in any order, each ended fact has the time at which it ended."""
    made: list[ExtractedFacts] = []
    seq = 0
    for batch in batches:
        turns = [turn(seq + index, text, who) for index, (text, who) in enumerate(batch)]
        seq += len(turns)
        made.append(extracted(turns))
    for fact in known_after(*made):
        assert (fact.superseded_by is None) == (fact.superseded_at is None)
        assert fact.superseded_at is None or fact.superseded_at >= fact.at
