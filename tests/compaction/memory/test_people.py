"""Facts that people tell of themselves: what is kept of a batch, and what a later fact ends."""

from __future__ import annotations

from dataclasses import replace

from compaction.memory.people import (
    ExtractedFacts,
    PersonFact,
    extract_person_facts,
    merge_facts,
    participants_part,
)
from compaction.model import Fact, FactKind, Segment, Seq
from compaction.summary.folded import known_facts_of
from compaction.untrusted_text import without_marks
from tests.compaction.segments import batch
from tests.compaction.segments import fact as told
from tests.compaction.turn_store_contract import EVENING, turn


def fact(seq: int, text: str, kind: FactKind = FactKind.LASTING, *closes: str, owner: str = "Ada") -> Fact:
    return replace(told(seq, text, kind, closes), owner=owner)


def people_of(*segments: Segment) -> ExtractedFacts:
    known = [each for made in segments for each in known_facts_of(made)]
    return extract_person_facts(
        known,
        [turn(each.fact.turn_seq, each.fact.text) for each in known],
        session_id=EVENING,
        superseded={each.ref: each.fact for each in known},
    )


def test_people_say_lasting_things_of_themselves() -> None:
    """Only what a person said of themselves is kept of them."""
    found = people_of(
        batch(
            0,
            fact(1, "Ada is allergic to nuts.", owner="ada"),
            fact(2, "Bob is ill.", owner="Bob"),
            fact(3, "They go.", FactKind.DECISION),
        )
    )
    assert [(each.person_id, each.text) for each in found.facts] == [("id-Ada", "Ada is allergic to nuts.")]


def test_later_fact_ends_the_one_that_it_closes() -> None:
    """The old one is kept as history."""
    first = batch(0, fact(1, "Ada lives in Oslo."))
    found = people_of(first, batch(1, fact(11, "Ada lives in Rome.", FactKind.LASTING, f"{first.id}#0")))
    settled = merge_facts(found, ())
    assert [(each.text, each.is_current) for each in settled.added] == [
        ("Ada lives in Oslo.", False),
        ("Ada lives in Rome.", True),
    ]
    assert merge_facts(found, settled.added).added == ()


def test_a_model_is_told_some_of_everybody_in_so_many_tokens() -> None:
    """Of each as many facts at most, the newest first."""
    present = [("1", "Ada"), ("2", "Bob")]
    known = [
        PersonFact(f"{who}#{at}", who, name, f"The boat {at} is mine.", EVENING, Seq(at), float(at))
        for who, name in present
        for at in range(9)
    ]
    for max_tokens, newest in ((1_000, [*range(8, 2, -1)]), (90, [8, 7]), (10, None)):
        part = participants_part(present, known, max_tokens=max_tokens, most_each=6)
        lines = None if part is None else without_marks(part.content).split("\n")[1:]
        boats = newest and " ".join(f"The boat {at} is mine." for at in newest)
        assert lines == (newest and [f"{name}: {boats}" for _, name in present])
