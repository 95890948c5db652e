"""Whether a later statement replaces an earlier one."""

from __future__ import annotations

import pytest

from compaction.language.correction import Statement, asks, replaces, takes_back
from compaction.language.terms import terms

# Each entry is (old, new, question). The same person says both statements, half a session apart.
REPLACED = (
    ("The gate code is 4411.", "The gate code is 7702 now.", "What is the gate code?"),
    ("We meet at nine on Saturday.", "Actually we meet at ten on Saturday.", "When do we meet on Saturday?"),
    ("The wifi password is tulip.", "The wifi password changed to walrus.", "What's the wifi password?"),
    ("The cabin is in Braemar.", "We moved the cabin to Aviemore instead.", "Where is the cabin?"),
    ("The concert starts at seven.", "The concert starts at half past eight now.", "When does the concert start?"),
    ("My sister lives in Leeds.", "My sister moved to York.", "Where does your sister live?"),
    ("The budget is 450 pounds.", "The budget is 600 pounds.", "How big is the budget?"),
    ("Ben brings the lemonade.", "Actually Chloe brings the lemonade.", "Who brings the lemonade?"),
    (
        "The train leaves from platform 4.",
        "The train leaves from platform 9.",
        "Which platform does the train leave from?",
    ),
    ("My favourite colour is green.", "My favourite colour is blue these days, not green anymore.", "favourite colour"),
    ("The boss has three phases.", "I was wrong, the boss has five phases.", "How many phases does the boss have?"),
    ("Let's book the red room.", "Let's book the blue room instead.", "Which room do we book?"),
    ("Our team is called the Otters.", "Our team is called the Badgers now.", "What is our team called?"),
    ("The deadline is Friday.", "The deadline moved to Monday.", "When is the deadline?"),
    ("The pizza costs 12 euros.", "The pizza costs 14 euros now.", "What does the pizza cost?"),
    ("I play the healer.", "I switched to the tank, no longer the healer.", "What do you play?"),
    ("The meeting is on Tuesday.", "The meeting was postponed to Thursday.", "When is the meeting?"),
    ("Dora drives us to the lake.", "Cy drives us to the lake instead.", "Who drives us to the lake?"),
    ("The server runs on port 8080.", "The server runs on port 9090 now.", "Which port does the server run on?"),
    ("My dog is called Rex.", "Correction, my dog is called Max, Rex was the old one.", "What is your dog called?"),
    ("The key is under the blue pot.", "The key is not under the blue pot, it's in the shed now.", "Where is the key?"),
    ("The film starts at 20:15.", "The film starts at 21:00, they changed it.", "When does the film start?"),
    ("We need six chairs.", "Turns out we need eight chairs.", "How many chairs do we need?"),
    ("The release is version 2.1.", "The release is version 2.2 after all.", "Which version is the release?"),
    (
        "Anna's birthday is on the 3rd of May.",
        "Anna's birthday is on the 5th of May, I got it wrong.",
        "Anna's birthday",
    ),
    ("The hotel is the Grand.", "The hotel is the Plaza now, the Grand was full.", "Which hotel is it?"),
)
# In these pairs both statements hold.
KEPT = (
    ("Ben brings the lemonade.", "Ben also brings the bread."),
    ("The gate code is 4411.", "What is the gate code?"),
    ("The concert starts at seven.", "I love this new concert hall."),
    ("We need six chairs.", "The boss has five phases now."),
    ("I like tea.", "I like coffee too."),
    ("The red door is open.", "The blue car is gone."),
    ("Let's meet at nine.", "I have nine lives left, actually."),
    ("The gate code is 4411.", "The gate code is 4411."),
)


def said(text: str, seq: int, *, speaker: str = "ada") -> Statement:
    """Return a statement of the session."""
    return Statement("evening", seq, 1_000.0 + seq, speaker, text)


@pytest.mark.parametrize(("old", "new", "question"), REPLACED)
def test_a_correction_replaces(old: str, new: str, question: str) -> None:
    """A later statement that gives another value for the same thing replaces the earlier one, never the reverse."""
    before, after = said(old, 3), said(new, 90)
    asked = dict.fromkeys(terms(question), 1.0)
    assert replaces(after, before, asked=asked)
    assert not replaces(before, after, asked=asked)


@pytest.mark.parametrize(("old", "new"), KEPT)
def test_what_merely_follows_replaces_nothing(old: str, new: str) -> None:
    """A statement that adds something, asks, or is about another thing replaces nothing."""
    assert not replaces(said(new, 90), said(old, 3), asked=dict.fromkeys(terms(old), 1.0))


def test_everybody_has_a_favourite_of_their_own() -> None:
    """One person's statement about themselves is not corrected by another person's statement."""
    mine, theirs = "My favourite colour is green.", "My favourite colour is blue now."
    assert not replaces(said(theirs, 9, speaker="bob"), said(mine, 3))
    assert replaces(said(theirs, 9), said(mine, 3))


def test_anybody_may_correct_what_is_of_all() -> None:
    """What people agreed on may be corrected by any of them."""
    new = said("The meeting moved to Friday.", 9, speaker="bob")
    assert replaces(new, said("The meeting is on Tuesday.", 3))


@pytest.mark.parametrize(
    "text", ["No wait, I meant Friday.", "Sorry, it's Friday.", "Scratch that, Friday.", "Actually, make it Friday."]
)
def test_who_takes_back_need_not_repeat_the_subject(text: str) -> None:
    """Right after their own statement people need not repeat the subject: 'I meant Friday' is enough. From another
    person it is not.
    """
    old = said("The picnic is on Saturday.", 3)
    assert takes_back(said(text, 4), old)
    assert not takes_back(said(text, 4, speaker="bob"), old)
    assert not takes_back(said("And on Friday we rest.", 4), old)


def test_another_session_later_may_correct() -> None:
    """A statement of a later session can correct one of an earlier session. Their turn numbers cannot be compared, so
    their times are.
    """
    old = Statement("monday", 500, 1_000.0, "ada", "The gate code is 4411.")
    new = Statement("tuesday", 2, 2_000.0, "ada", "The gate code is 7702 now.")
    assert replaces(new, old)
    assert not replaces(old, new)


@pytest.mark.parametrize("text", ["what time is it", "So who brings the bread", "Is it open?", "Really?"])
def test_questions_are_known_without_their_mark(text: str) -> None:
    """Questions are recognised without a question mark, because speech recognisers often omit it."""
    assert asks(text)
    assert not asks("The bread is here.")
