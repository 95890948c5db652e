"""Corrections without a subject are recognised and linked to the statement or question just before them."""

from __future__ import annotations

import pytest

from compaction.language.elliptic import REACH_TURNS, SpokenSentence, find_reference, is_bare_correction

BARE = (
    "No, it is Sunday now.",
    "Actually, make that nine.",
    "Not any more, 7702 since yesterday.",
    "No, they extended it, the 9th of July now.",
    "No, quarter to ten now, the room was taken.",
    "Scratch that, half past seven.",
    "Oh sorry, I meant Tuesday.",
    "Wait, it's Marta now.",
    "They pushed it to Thursday.",
    "It's 500 now.",
    "Nope, 8 pm.",
    "We'll say ten instead.",
    "Correction: the 12th.",
    "Let's make it Wednesday instead.",
    "Hang on, 4512.",
    "Turns out it's six people.",
    "Nah, Bristol.",
    "Sorry, Saturday, the hall is booked on Friday.",
    "It got moved to noon.",
    "My mistake, it's 42 euros.",
    "Nine, actually.",
    "We leave at five now.",
)
WHOLE = (
    "No, the raid is on Friday now.",
    "I have nine lives left, actually.",
    "No idea, honestly.",
    "We need six chairs now.",
    "Actually I moved to Berlin in May with my sister.",
    "Is it Sunday now?",
    "No way.",
    "Wait, what?",
    "Sorry, I'm late.",
    "No, I like tea.",
    "Yesterday was Sunday.",
    "The budget went up to 500.",
)


@pytest.mark.parametrize("text", BARE)
def test_what_gives_a_value_and_no_subject_corrects_barely(text: str) -> None:
    """A sentence with a value and no subject is a bare correction, in any wording."""
    assert is_bare_correction(text)


@pytest.mark.parametrize("text", WHOLE)
def test_what_names_its_subject_or_gives_nothing_does_not(text: str) -> None:
    """A sentence that names its subject, or gives no value, is not a bare correction."""
    assert not is_bare_correction(text)


def about(*said: str, gap: int = 1) -> str | None:
    """Return which sentence the last of these sentences refers to.

    Each sentence begins with its speaker. The last one comes `gap` turns after the one before it.
    """
    sayings = [SpokenSentence(seq, *each.split(": ", 1)) for seq, each in enumerate(said)]
    last = sayings[-1]
    sayings[-1] = SpokenSentence(last.seq + gap - 1, last.speaker, last.text)
    found = find_reference(sayings, len(sayings) - 1)
    return None if found is None else sayings[found].text


@pytest.mark.parametrize(
    ("before", "bare"),
    [
        ("Bob: So the raid is still on Monday, right?", "Ada: No, it is Sunday now."),
        ("Ada: We meet at eight at the station.", "Ada: Actually, make that nine."),
        ("Ada: We meet at eight at the station.", "Bob: Half past eight, actually."),
        ("Ada: The locker code is 4411.", "Ada: Hang on, 4512."),
        ("Bob: When does the film start?", "Ada: They pushed it to Thursday."),
        ("Bob: Who hosts the quiz?", "Ada: Wait, it's Marta now."),
        ("Bob: Olga hosts the quiz on Friday, remember.", "Ada: Sorry, Saturday, the hall is taken on Friday."),
        ("Bob: How much was the cabin?", "Ada: It's 500 now."),
        ("Ada: Let's book a table for six people.", "Ada: Turns out it's eight people."),
        ("Bob: The exam is on the 5th of May, I think we have to be there early.", "Ada: Correction: the 12th."),
        ("Roomtone: The deadline is on Tuesday.", "Ada: No, they moved it to Friday."),
    ],
)
def test_it_is_about_what_was_said_just_before(before: str, bare: str) -> None:
    """A bare correction refers to a statement with a value of the same kind, or to a question that asks for one."""
    assert about(before, bare) == before.split(": ", 1)[1]


def test_chatter_between_is_passed_over() -> None:
    """Chatter between a statement and its correction is skipped: numbers of the moment, and sentences without a value
    of the same kind.
    """
    said = (
        "Ada: The pizza place closes at ten, remember to book.",
        "Bob: I'm stuck at 12 percent again, this loading screen.",
        "Cy: Haha no way.",
        "Bob: Behind you, behind you!",
    )
    assert about(*said, "Ada: Oh, make that eleven.") == said[0].split(": ", 1)[1]


def test_the_nearest_of_two_is_meant() -> None:
    """Of two possible statements the most recent one is chosen."""
    said = ("Ada: The match is on Friday, let's go.", "Bob: The dinner is on Saturday, let's go.")
    assert about(*said, "Bob: No, Sunday now.") == "The dinner is on Saturday, let's go."


def test_a_code_does_not_become_an_hour() -> None:
    """A value replaces only a value of the same kind."""
    said = ("Ada: We meet at eight.", "Bob: The gate code is 4411.")
    assert about(*said, "Ada: Actually, make that nine.") == "We meet at eight."
    assert about("Bob: The gate code is 4411.", "Ada: Actually, make that nine.") is None


def test_who_says_the_same_corrects_nothing() -> None:
    """A sentence with the same value, such as 'No, Friday' after 'on Friday', corrects nothing, because it answers
    something else.
    """
    assert about("Ada: Let's meet on Friday.", "Bob: No, Friday now.") is None


def test_it_reaches_only_so_far() -> None:
    """A bare correction refers back only a few turns, because after more turns people name the subject."""
    said = ("Ada: We meet at eight.", "Ada: Actually, make that nine.")
    assert about(*said, gap=REACH_TURNS) == "We meet at eight."
    assert about(*said, gap=REACH_TURNS + 1) is None


def test_answers_lead_to_their_questions() -> None:
    """A bare answer that corrects nothing also refers to the question that it answers. Nobody answers their own
    question.
    """
    assert about("Bob: Is the cabin free?", "Ada: Yes, from the 3rd of May.") == "Is the cabin free?"
    assert about("Bob: How much is the cabin?", "Ada: It's 450 pounds.") == "How much is the cabin?"
    assert about("Bob: Who has the blue key card?", "Ada: That's 37 kills for me.") is None
    assert about("Ada: How much is the cabin?", "Ada: It's 450 pounds.") is None
