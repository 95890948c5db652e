"""When somebody is forgotten, their words go from a segment, and what others said stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.language.terms import terms
from compaction.memory.forgotten_turns import words_in_session
from compaction.memory.restating import forgotten_words
from compaction.memory.segment_forgetting import RemainingWords, forget_in_segment
from compaction.model import Fact, FactKind, NoteId, Seq, TurnKind
from tests.compaction.turn_store_contract import bot_turn, segment, turn

# Ada said these in turn 0, which is forgotten.
FORGOTTEN = (
    "My boat lies behind the lighthouse at Wickham.",
    "Such an emergency, and no room left to eat late!",
    "No room!",
)
NEAR = [
    turn(2, "No nuts for me, I was in hospital.", speaker="Tuva"),
    turn(3, "Ada, are you fine?", speaker="Bob"),
    bot_turn(4, "I know nothing about a lighthouse."),
]
ELSEWHERE = [
    turn(40, "Each room has an emergency exit, and we eat there.", speaker="Bob"),
    bot_turn(41, "I know nothing about Wickham."),
]


def fact(speaker: str, text: str, seq: int) -> Fact:
    """Return a fact in a model's words."""
    return Fact((Seq(seq),), FactKind.LASTING, speaker, 1.0, text, subject=speaker, quoted=False)


def left_of(*facts: Fact, name: str = "Ada") -> list[str]:
    """Return the texts of the facts that are left when Ada is forgotten. `name`: hers."""
    left = [*NEAR, *ELSEWHERE]
    made, _ = forget_in_segment(
        replace(segment(0, 10), facts=facts),
        NEAR,
        NEAR,
        frozenset({Seq(0)}),
        frozenset(),
        RemainingWords.of(left),
        words_in_session(forgotten_words(FORGOTTEN, {name}), left, "id-Ada", spoke=True),
    )
    return [each.text for each in made.facts if each.text]


@pytest.mark.parametrize(
    ("told", "stays"),
    [
        # In other words than Tuva's, each of which Ada has said too, of something else.
        (fact("Tuva", "Tuva must not eat nuts and was in the emergency room.", 2), True),
        (fact("Bob", "Bob asked Ada whether she is fine.", 3), True),
        (fact("Tuva", "Tuva had no room with nuts.", 2), True),
        # Ada's words that nobody else has said, whoever is named with them.
        (fact("Bob", "Bob's boat lies at Wickham.", 3), False),
        (fact("Bob", "The matter of Wickham goes on.", 3), False),
        (fact("Bob", "Ada has a lighthouse.", 3), False),
        # Word for word what the bot is left with.
        (fact("Roomtone", "I know nothing about a lighthouse.", 4), True),
        # Of Ada herself a word is enough that nobody near it has said.
        (fact("Bob", "Ada is over her emergency.", 3), False),
    ],
)
def test_a_fact_of_others_stays_unless_it_tells_forgotten_words(told: Fact, *, stays: bool) -> None:
    """A model words facts anew, so a word that the person has said once, too, is no reason to forget somebody else's
    allergy.
    """
    assert left_of(told) == ([told.text] if stays else [])


@pytest.mark.parametrize(
    ("told", "name", "stays"),
    [
        ("Ada is over her emergency.", "Ada Lovelace", False),
        ("Bob knows of Lovelace's emergency.", "Ada Lovelace", False),
        ("Will is over his emergency.", "Will Smith", False),
        ("Bob asked Ada whether she is fine.", "Ada Lovelace", True),
        # Nobody near has called her that.
        ("Bob knows Lovelace well.", "Ada Lovelace", False),
        ("Bob knows Ada well.", "Ada Lovelace", True),
        # Words that are no names, and a name that is somebody else's, too.
        ("The room has an emergency exit of its own.", "The Queen of Wands", True),
        ("Bob will use the emergency exit.", "Will Smith", True),
        ("Tuva is over her emergency.", "Tuva Lovelace", True),
        ("Roomtone knows of an emergency.", "Roomtone Fan", True),
    ],
)
def test_one_word_of_a_display_name_names_a_person(told: str, name: str, *, stays: bool) -> None:
    """A model calls 'Ada Lovelace' Ada, as everybody does. 'Emergency' was said by somebody else, but not of her."""
    assert left_of(fact("Bob", told, 3), name=name) == ([told] if stays else [])


def test_a_fact_goes_with_the_words_that_it_was_made_of() -> None:
    """Turn 0 was said by Ada and Tuva, whose part is left. A fact that goes leaves its place, and what it corrected
    stays corrected; a note of her screen takes its facts along.
    """
    shared = [turn(0, "Soup for me.", speaker="Tuva"), *NEAR]
    seen = replace(fact("Ada", "A map is shown.", 0), note_id=NoteId("gone"))
    made_of: list[tuple[Fact, bool]] = [
        (replace(fact("Ada", "Bread.", 0), supersedes=("evening:0-5#1",)), False),
        (fact("Tuva", "Soup.", 0), True),
        (replace(fact("Tuva", "Soup and bread.", 0), turns=(Seq(0), Seq(2))), False),
        (replace(fact("Tuva", "Nuts and hospitals.", 2), turns=(Seq(2), Seq(3))), True),
        (seen, False),
        (replace(seen, text="A chart is shown.", note_id=NoteId("kept")), True),
    ]
    whole = replace(segment(0, 10, note_ids=("gone", "kept")), facts=tuple(each for each, _ in made_of))
    made, count = forget_in_segment(
        whole, shared, shared, frozenset({Seq(0)}), frozenset({"gone"}), RemainingWords.of(shared)
    )
    assert [each.text for each in made.facts] == [each.text if stays else "" for each, stays in made_of]
    assert count == 3
    assert (made.facts[0].speaker, made.facts[0].subject) == ("", "")
    assert made.facts[0].supersedes == ("evening:0-5#1", f"{whole.id}#0")
    assert made.note_ids == ("kept",)
    again, count = forget_in_segment(
        made, shared, shared, frozenset({Seq(0)}), frozenset({"gone"}), RemainingWords.of(shared)
    )
    assert (again.facts, count) == (made.facts, 0)


def test_the_words_of_a_turn_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long session has thousands of facts, and nothing can be stored while it is forgotten."""
    read: list[str] = []

    def counted(text: str) -> tuple[str, ...]:
        read.append(text)
        return terms(text)

    monkeypatch.setattr("compaction.memory.segment_forgetting.terms", counted)
    left_of(*(fact("Bob", f"Bob asked Ada {count} times whether she is fine.", 3) for count in range(50)))
    people = [each for each in (*NEAR, *ELSEWHERE) if each.kind is TurnKind.SPEECH]
    assert sorted(read) == sorted(part.text for each in people for part in each.parts)
