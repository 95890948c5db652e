"""How the embedded responder chooses the sentence that answers a question."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.brain.embedded.evidence import Evidence, asks, asks_about_something, best_match, content_stems
from compaction.payload import PartKind

TALK = [
    ("Ada", "I left the spare key under the blue flower pot behind the shed."),
    ("Bo", "The train to Lisbon leaves at seven fifteen on Friday morning."),
    ("Cy", "My sister Marta is bringing two lemon cakes."),
    ("Ada", "We decided to meet at the harbour."),
    ("Bo", "I am allergic to peanuts, so no satay for me."),
    ("Cy", "The budget for the trip is four hundred euros."),
    ("Bo", "What is the budget for the trip?"),
    ("Ada", "I would like some tea."),
    ("Ada", "Actually, let's meet at the old station instead."),
]
NAMES = ("Roomtone", "Room tone")


def sentences(talk: list[tuple[str, str]]) -> list[Evidence]:
    """Return each line as a sentence of its own turn."""
    return [Evidence(text, PartKind.TURN, order, speaker) for order, (speaker, text) in enumerate(talk)]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Roomtone, where is the spare key?", 0),
        ("Room tone, where did Ada leave the key", 0),
        ("When does the train to Lisbon leave?", 1),
        ("Who is bringing the cakes, Roomtone?", 2),
        ("What is Bo allergic to?", 4),
        ("How much is the budget for the trip?", 5),
        ("Roomtone, what was the trip's budget again?", 5),
        ("Where do we meet?", 8),
        ("Where are we going to meet?", 8),
        ("Room tone, Tell Us Again Where We Meet.", 8),
        ("Roomtone, What Is the Budget for the Trip?", 5),
    ],
)
def test_the_fitting_sentence_is_found(question: str, answer: int) -> None:
    """The matching sentence is found however the question is worded, and a later correction wins over the old value."""
    found = best_match(question, sentences(TALK), ignore=NAMES)
    assert found is not None
    assert found.order == answer


GERMAN_TALK = [
    ("Ada", "Der Ersatzschlüssel liegt unter dem blauen Blumentopf."),
    ("Bo", "Der Zug nach Lissabon fährt am Freitag um sieben Uhr."),
    ("Cy", "Ich bin allergisch gegen Erdnüsse."),
    ("Ada", "Das Passwort vom Server ist Nachtfalter."),
    ("Bo", "Wann fährt der Zug nach Lissabon?"),
    ("Ada", "Das Passwort vom Server ist jetzt doch Morgenstern."),
]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Roomtone, wo liegt der Ersatzschlüssel?", 0),
        ("Wann fährt der Zug nach Lissabon?", 1),
        ("Gegen welche Erdnüsse ist Cy allergisch?", 2),
        ("Wie ist das Passwort vom Server?", 5),
        ("Wie heißt der Vulkan?", None),
    ],
)
def test_the_fitting_sentence_is_found_in_german(question: str, answer: int | None) -> None:
    """The same rules find the matching sentence of a German talk, and nothing if nobody spoke about the subject."""
    found = best_match(question, sentences(GERMAN_TALK), ignore=NAMES)
    assert (None if found is None else found.order) == answer


@pytest.mark.parametrize(
    "question",
    ["What is the name of the volcano?", "Roomtone, how are you?", "Roomtone?", "Who won the football match?"],
)
def test_what_nobody_spoke_of_is_not_found(question: str) -> None:
    """If nobody spoke about the subject, no sentence is found."""
    assert best_match(question, sentences(TALK), ignore=NAMES) is None


def test_a_question_is_no_answer() -> None:
    """An earlier question is never an answer, even if it has the same words."""
    asked = sentences([("Bo", "What is the budget for the trip?"), ("Cy", "So what is the budget?")])
    assert best_match("What is the budget for the trip?", asked) is None
    heard = sentences([("Bo", "Roomtone, who brings the waffle iron.")])
    assert best_match("Roomtone, who brings the waffle iron?", heard, ignore=NAMES) is None


@pytest.mark.parametrize("called", ["Roomtone", "Ton"])
def test_a_question_that_was_misheard_is_no_answer(called: str) -> None:
    """A sentence to the bot that only repeats the question's words is no answer, although it does not ask."""
    said = sentences(
        [("Bo", "The little bag hangs in the hall."), ("Bo", f"{called}, we're just the little bag hang.")]
    )
    found = best_match("Roomtone, tell us where the little bag hangs.", said, ignore=NAMES)
    assert found is said[0]


def test_what_tells_more_than_the_question_is_nearer() -> None:
    """A question that was misheard as a statement with one new word is farther than what tells the answer."""
    said = sentences(
        [
            ("Ada", "The blue one is in the attic, and the little bag with all our passports hangs in the hall."),
            ("Ada", "Roomtone, Where does the red suitcase stand?"),
            ("Ada", "Roomtone, We're just the little bag-hang."),
        ]
    )
    found = best_match("Roomtone, Tell Us Again Where The Little Bag Hanks.", said, ignore=NAMES, asker="Ada")
    assert found is said[0]


def test_the_word_that_was_said_is_nearer_than_its_value() -> None:
    """'Fifteenth' and '15' have the same value, and the sentence with the word itself answers."""
    said = sentences(
        [
            ("Ada", "The landlord wants the rent of the workshop on the fifteenth."),
            ("Dan", "Parcel 15 with the kettle was polished near the market by Dan."),
        ]
    )
    assert best_match("Who wants to be paid on the fifteenth?", said) is said[0]


_WORDS = sorted({word for _, text in TALK for word in text.split()})
_SAID = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=8).map(" ".join)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["Ada", "Bo", "Cy"]), _SAID), max_size=6), _SAID)
@example([("Ada", "The trip's budget.")], "What is the budget of the trip to Lisbon with Marta and Ben?")
def test_any_question_of_any_talk_is_answered_from_it_or_not_at_all(talk: list[tuple[str, str]], question: str) -> None:
    """What only repeats a part of the question is no answer, and breaks nothing if there is no other."""
    evidence = sentences(talk)
    found = best_match(question, evidence)
    assert found is None or found in evidence


def test_a_sentence_that_repeats_a_part_of_the_question_is_no_answer() -> None:
    """It tells nothing new, so nothing is said."""
    repeated = sentences([("Ada", "The trip's budget.")])
    assert best_match("What is the budget of the trip to Lisbon with Marta and Ben?", repeated) is None


@settings(deadline=None)
@given(st.permutations(TALK), st.text(max_size=60))
def test_only_what_was_said_is_answered(talk: list[tuple[str, str]], question: str) -> None:
    """For any question, the result is one of the spoken sentences, is not a question, and is the same each time."""
    found = best_match(question, sentences(talk), ignore=NAMES)
    assert found == best_match(question, sentences(talk), ignore=NAMES)
    assert found is None or ((found.speaker, found.text) in talk and not asks(found.text))


def test_small_talk_asks_about_nothing() -> None:
    """Small talk has no subject that memory could be searched for."""
    assert not asks_about_something("Roomtone, how are you?", ignore=NAMES)
    assert asks_about_something("Roomtone, where is the key?", ignore=NAMES)


@pytest.mark.parametrize(
    ("left", "right"),
    [("brings", "bringing"), ("keys", "key"), ("leaves", "leave"), ("allergies", "allergy"), ("running", "runs")],
)
def test_forms_of_one_word_meet(left: str, right: str) -> None:
    """Different forms of a word have the same stem, because a question and its answer rarely use the same form."""
    assert content_stems(left) == content_stems(right)
