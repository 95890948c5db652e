"""A later claim replaces an earlier one only if it gives another value for the same thing."""

from __future__ import annotations

import pytest

from compaction.language.claims import claim_of, corrects, reference_of, with_reference, without_reference
from compaction.language.wording import without_preamble
from compaction.model import Fact, FactKind, Seq
from compaction.summary.extractive import extract_facts
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
        # These correct nothing: another subject, the same value, an addition, a question.
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
    before, after = (
        Fact((Seq(seq),), FactKind.DECISION, "Ada", float(seq), text) for seq, text in enumerate((old, new))
    )
    assert corrects(claim_of(after), claim_of(before)) is expected


# These sentences differ from the templates of the benchmark, so that the rules do not only fit the templates. The same
# person says both sentences of a pair.
CORRECTED = (
    ("My dentist appointment is on Tuesday.", "Listen, they moved my dentist appointment to Monday."),
    ("The flat in Leith costs 800 euros.", "The flat in Leith went up to 850 euros."),
    ("Ravi drives us to the airport.", "Turns out Ravi can't, Lena drives us to the airport."),
    ("Little Tom has his birthday on the 3rd of May.", "I mixed that up, little Tom's birthday is on the 5th of May."),
    ("The driving test is on Friday.", "They rescheduled the driving test, it's on Thursday."),
    ("We play the finale at half past seven.", "The finale got delayed, we start at eight."),
    ("The wifi password is 4471.", "New wifi password: 9923."),
    ("Lena takes the dog on Wednesday.", "Lena can't on Wednesday, she takes the dog on Friday."),
    ("The recipe needs 200 grams of butter.", "Correction on the recipe, it needs 250 grams of butter."),
    ("Our server runs on port 8080.", "Our server runs on port 9090 these days."),
    ("The tickets cost 45 euros each.", "The tickets are 52 euros each now."),
    ("I booked the hotel for the 12th of June.", "I had to rebook the hotel, it's the 14th of June."),
    ("The raid starts at eight on Saturday.", "The raid starts at nine on Saturday."),
    ("Nina brings the speakers.", "Change of plan, Omar brings the speakers."),
    ("The exam is on the 9th of March.", "They pushed the exam back to the 16th of March."),
    ("The pin for the locker is 3311.", "Somebody changed the locker pin to 8080."),
    ("The rent is due on the first of May.", "The landlord moved the rent to the third of May."),
    ("We watch the match at Sam's place.", "We watch the match at Nora's place instead."),
    ("The call with the bank is at ten.", "The bank moved our call to eleven."),
    ("My train leaves at 7:45.", "My train leaves at 8:05 now, they cancelled the earlier one."),
    ("The team name is Red Foxes.", "The team name is Blue Herons now."),
    ("We need twelve chairs for the party.", "We only need nine chairs for the party."),
    ("The budget for the trip is 900 pounds.", "We cut the budget for the trip to 700 pounds."),
    ("The workshop is in room 204.", "They switched the workshop to room 310."),
    ("I'm allergic to peanuts.", "It turned out I'm not allergic to peanuts after all."),
    ("The deadline for the essay is Monday.", "The professor extended the essay deadline until Wednesday."),
    ("Kofi is picking us up at six.", "Kofi is running late, he is picking us up at seven."),
    ("The party is at my place on Friday.", "I have to move the party to Saturday."),
)
# The second sentence is about another thing, or adds something.
LEFT_ALONE = (
    ("The flat in Leith costs 800 euros.", "The flat in Harrow costs 650 euros."),
    ("My dentist appointment is on Tuesday.", "My eye appointment is on Friday."),
    ("Nina brings the speakers.", "Nina brings the lamps on Friday."),
    ("We need twelve chairs for the party.", "We need three tables for the party now."),
    ("The exam is on the 9th of March.", "The oral exam results come on the 16th of March."),
    ("Ravi drives us to the airport.", "Ravi drives to work in 20 minutes now."),
    ("The workshop is in room 204.", "The library is in room 310 now."),
    ("My train leaves at 7:45.", "Sam's train leaves at 8:05."),
    ("The recipe needs 200 grams of butter.", "The recipe needs 3 eggs."),
    ("The tickets cost 45 euros each.", "The drinks cost 5 euros each now."),
    ("The raid starts at eight on Saturday.", "The dinner starts at nine on Sunday."),
    ("Little Tom has his birthday on the 3rd of May.", "Little Zoe has her birthday on the 5th of May."),
    ("The pin for the locker is 3311.", "The pin for the gate is 8080."),
    ("Jonas hosts the quiz on Thursday.", "Jonas hosts the karaoke on Sunday now."),
    ("The wifi password is 4471.", "The wifi router cost 60 euros."),
    ("I have two cats.", "I have three meetings today."),
    ("We watch the match at Sam's place.", "Sam scored in the match, three to one now."),
    ("The call with the bank is at ten.", "The bank opens at nine now."),
)


@pytest.mark.parametrize(("old", "new"), CORRECTED)
def test_people_correct_themselves_in_many_ways(old: str, new: str) -> None:
    """The later statement takes the earlier one's place."""
    before, after = (
        claim_of(Fact((Seq(0),), FactKind.DECISION, "Ada", 0.0, without_preamble(text))) for text in (old, new)
    )
    assert corrects(after, before)


@pytest.mark.parametrize(("old", "new"), LEFT_ALONE)
def test_what_is_said_of_something_else_corrects_nothing(old: str, new: str) -> None:
    """A similar statement about another subject corrects nothing."""
    before, after = (
        claim_of(Fact((Seq(0),), FactKind.DECISION, "Ada", 0.0, without_preamble(text))) for text in (old, new)
    )
    assert not corrects(after, before)


def test_what_a_bare_correction_is_about_can_be_read_and_left_out() -> None:
    """The statement that a bare correction refers to is part of the fact's text, in the words of its speaker. Both
    parts can be read separately.
    """
    text = with_reference("Actually, make that nine.", "We meet at eight.", max_chars=240)
    assert text == "Actually, make that nine (about: We meet at eight.)"
    assert reference_of(text) == "We meet at eight."
    assert without_reference(text) == "Actually, make that nine."
    assert with_reference("No.", "Is it open?", max_chars=240) == "No (asked: Is it open?)"
    assert (reference_of("We meet (all of us)."), without_reference("We meet.")) == ("", "We meet.")


def test_people_correct_only_themselves_about_themselves() -> None:
    """Statements of two people about themselves both hold. A later statement of the same person corrects the earlier
    one.
    """
    (adas,) = extract_facts((turn(0, "My birthday is on 14 October."),), start=Seq(0))
    (bobs,) = extract_facts((turn(1, "My birthday is on 25 October.", speaker="Bob"),), start=Seq(1))
    (hers,) = extract_facts((turn(2, "My birthday is on 15 October."),), start=Seq(2))
    assert not corrects(claim_of(bobs), claim_of(adas))
    assert corrects(claim_of(hers), claim_of(adas))
