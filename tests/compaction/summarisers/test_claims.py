"""A later claim takes an earlier one's place only when it is plainly the same thing with another value."""

from __future__ import annotations

import pytest

from compaction.model import Fact, Seq, Slot
from compaction.summarisers.claims import claim_of, corrects, reference_of, with_reference, without_reference
from compaction.summarisers.extractive import extract
from tests.compaction.turn_store_contract import turn


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("The gate code is 4411.", "The gate code is 7023.", True),
        ("We meet on Friday at the station.", "Actually we meet on Saturday at the station.", True),
        ("The budget is 400 pounds.", "The budget went up, it's now 450 pounds.", True),
        ("The trip is in May.", "Let's move the trip to June instead.", True),
        ("The LAN party is on Monday.", "The LAN party moved to Friday, Monday doesn't work for me any more.", True),
        ("I'm flying to Lisbon on the 3rd of March.", "The Lisbon trip got moved, we leave on the 9th of July.", True),
        ("For the potluck I want red, nothing else.", "I changed my mind, blue for the potluck instead.", True),
        ("Femi is bringing the first aid kit.", "Carla brings the first aid kit now, Femi can't make it.", True),
        ("The match starts at eleven o'clock.", "The match starts at nine thirty instead, the room was taken.", True),
        ("The raid is on Monday.", "No no, Friday now (asked: The raid is still on Monday, right?)", True),
        (
            "The rehearsal starts at ten to five.",
            "No, quarter to ten now (asked: The rehearsal is at ten to five?)",
            True,
        ),
        (
            "We meet at eight at the station.",
            "Actually, make that nine (about: We meet at eight at the station.)",
            True,
        ),
        ("The quiz is on Friday.", "No, Sunday (about: The quiz is on Monday.)", False),
        ("No, Friday now (about: The quiz is on Monday.)", "No, Sunday (about: The quiz is on Monday.)", True),
        ("For the hike we meet at the old gate.", "The kiosk instead (asked: We meet at the old gate?)", True),
        ("The raid is on Monday.", "No, Friday now (asked: The exam is on Monday, right?)", False),
        ("I owe Olga 20 euros.", "It's 42 euros (asked: You owe Ravi 20 euros?)", False),
        ("Is the raid still on Monday?", "No, Friday now (asked: Is the raid still on Monday?)", True),
        # Another subject, the same value, an addition, a question.
        ("The gate code is 4411.", "The locker number is 7023.", False),
        ("The gate code is 4411.", "Yes, the gate code is 4411.", False),
        ("Olga brings 2 tents.", "Olga brings 2 tents and 3 chairs.", False),
        ("The gate code is 4411.", "The gate code, is it 7023 now?", False),
        ("Ada scored 41 points.", "Bob is 17 years old now.", False),
        ("We scored 41 points near Hull.", "We scored 17 points near Leeds.", False),
        ("We scored 41 points in that round.", "We scored 17 points in that round.", False),
        ("The red team has 5 points now.", "The blue team has 7 points now.", False),
        ("Olga brings the tent.", "Ravi brings the tent too.", False),
        ("The server room code is 7740.", "They changed the rehearsal room code, it's 8052 now.", False),
        ("The Oslo trip is on the 14th of June.", "The Porto trip got moved to the 9th of July.", False),
        ("Our cat Domino is eleven.", "Our cat Pixel is seven.", False),
        (
            "For the hike we meet at the town hall.",
            "New meeting point for the ride: the gate, the town hall is closed.",
            False,
        ),
        ("Olga's number is 12 in the list.", "Ravi's number is 15 in the list.", False),
    ],
)
def test_corrections_are_told_from_additions(old: str, new: str, expected: bool) -> None:
    """Another value for the same thing corrects; more of it, or of another thing, doesn't."""
    before, after = (Fact(Seq(seq), Slot.DECISION, "Ada", float(seq), text) for seq, text in enumerate((old, new)))
    assert corrects(claim_of(after), claim_of(before)) is expected


def test_what_a_bare_correction_is_about_can_be_read_and_left_out() -> None:
    """It is part of the fact's text, in the words of who said it."""
    text = with_reference("Actually, make that nine.", "We meet at eight.", max_chars=240)
    assert text == "Actually, make that nine (about: We meet at eight.)"
    assert reference_of(text) == "We meet at eight."
    assert without_reference(text) == "Actually, make that nine."
    assert with_reference("No.", "Is it open?", max_chars=240) == "No (asked: Is it open?)"
    assert (reference_of("We meet (all of us)."), without_reference("We meet.")) == ("", "We meet.")


def test_people_correct_only_themselves_about_themselves() -> None:
    """Two birthdays of two people both hold; one person's second one corrects the first."""
    (adas,) = extract((turn(0, "My birthday is on 14 October."),), start=Seq(0))
    (bobs,) = extract((turn(1, "My birthday is on 25 October.", speaker="Bob"),), start=Seq(1))
    (hers,) = extract((turn(2, "My birthday is on 15 October."),), start=Seq(2))
    assert not corrects(claim_of(bobs), claim_of(adas))
    assert corrects(claim_of(hers), claim_of(adas))
