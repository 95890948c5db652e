"""Names and numbers in a summary need a source, and the speaker is taken from the turn."""

from __future__ import annotations

import pytest

from compaction.model import Seq, Turn, TurnKind, TurnPart
from compaction.summary.grounding import best_matching_part, ground_of, strip_speaker, turn_ground, ungrounded
from tests.compaction.turn_store_contract import turn

SAID = turn(4, "We rent Olga's cabin for twenty-five people at 4,411 pounds.")


@pytest.mark.parametrize(
    "text",
    [
        "Rents the cabin of Olga for 25 people.",
        "Ada wants the cabin for 4411 pounds.",
        "Decided to take the cabin.",
        "One of them pays twenty.",
    ],
)
def test_what_was_said_is_grounded(text: str) -> None:
    """A text is grounded if it only has numbers in either notation, names with or without endings, the speaker, and
    ordinary words.
    """
    assert ungrounded(text, turn_ground([SAID])) == frozenset()


@pytest.mark.parametrize(
    ("text", "invented"),
    [
        ("Zebulon rents the cabin.", {"zebulon"}),
        ("Rents the cabin in Braemar.", {"braemar"}),
        ("The cabin is for 26 people.", {"26"}),
        ("The cabin is for thirty people.", {"30"}),
        ("Rents 2 cabins.", {"2"}),
    ],
)
def test_what_nobody_said_is_found(text: str, invented: set[str]) -> None:
    """Names and numbers without a source are returned."""
    assert ungrounded(text, turn_ground([SAID])) == invented


def test_other_sources_count() -> None:
    """Names and numbers from notes, from the list of participants and from the summary so far also have a source."""
    around = ground_of(["On Bob's screen: Tokyo, level 12.", "Dora"])
    assert ungrounded("Dora saw Tokyo on level 12 with Olga.", turn_ground([SAID]) | around) == frozenset()


def test_fact_belongs_to_the_part_that_says_it() -> None:
    """In a turn of two speakers a fact belongs to the part with the most matching words, or to the first of equal
    parts.
    """
    both = Turn(
        Seq(0),
        TurnKind.SPEECH,
        0.0,
        1.0,
        (TurnPart("1", "Ada", "I like the tent."), TurnPart("2", "Bob", "The cabin costs 450 pounds.")),
    )
    part = best_matching_part("The cabin costs 450.", both)
    assert part is not None
    assert part.speaker == "Bob"
    part = best_matching_part("Something else entirely", both)
    assert part is not None
    assert part.speaker == "Ada"
    assert (
        best_matching_part("anything", turn(1).__class__(Seq(1), TurnKind.SPEECH, 0.0, 0.0, (), tombstone=True)) is None
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada said that the cabin is taken.", "The cabin is taken."),
        ("Ada: the cabin is taken.", "The cabin is taken."),
        ("ADA decided to rent it.", "Decided to rent it."),
        ("The cabin is taken.", "The cabin is taken."),
        ("Adaline takes it.", "Adaline takes it."),
        # The words themselves mention Bob, so he may be their subject.
        ("Bob brings the tent.", "Bob brings the tent."),
        # Dora neither spoke nor is mentioned.
        ("Dora said that the cabin is taken.", None),
        ("Dora: the cabin is taken.", None),
    ],
)
def test_speaker_in_front_is_taken_off_or_refused(text: str, expected: str | None) -> None:
    """A speaker's name in front of a fact is removed, because the turn has the speaker. A wrong name drops the fact."""
    part = TurnPart("1", "Ada", "The cabin is taken, and Bob brings the tent.")
    assert strip_speaker(text, part, frozenset({"Ada", "Bob", "Dora"})) == expected
