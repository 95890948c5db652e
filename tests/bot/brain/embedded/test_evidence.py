"""How the embedded responder chooses the sentence that answers a question."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.brain.embedded.evidence import Evidence, EvidenceOrigin, asks_about_something, best_match
from bot.brain.lexicon import is_question, meaning_stem

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
    return [Evidence(text, EvidenceOrigin.TURN, order, speaker) for order, (speaker, text) in enumerate(talk)]


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
    ],
)
def test_the_fitting_sentence_is_found(question: str, answer: int) -> None:
    """The matching sentence is found however the question is worded, and a later correction wins over the old value."""
    found = best_match(question, sentences(TALK), ignore=NAMES)
    assert found is not None
    assert found.order == answer


@pytest.mark.parametrize(
    "question",
    ["What is the name of the volcano?", "Roomtone, how are you?", "Roomtone?", "Who won the football match?"],
)
def test_what_nobody_spoke_of_is_not_found(question: str) -> None:
    """If nobody spoke about the subject, no sentence is found."""
    assert best_match(question, sentences(TALK), ignore=NAMES) is None


def test_what_somebody_likes_is_asked_for() -> None:
    """'Like' is usually ignored as a word without meaning, but counts when the question asks for nothing else."""
    talk = sentences([("Ada", "The harbour is closed."), ("Ada", "I love green tea.")])
    assert best_match("What does Ada like?", talk) == talk[1]


def test_a_question_is_no_answer() -> None:
    """An earlier question is never an answer, even if it has the same words."""
    asked = sentences([("Bo", "What is the budget for the trip?"), ("Cy", "so what's the budget for the trip")])
    assert best_match("What is the budget for the trip?", asked) is None


@settings(deadline=None)
@given(st.permutations(TALK), st.text(max_size=60))
def test_only_what_was_said_is_answered(talk: list[tuple[str, str]], question: str) -> None:
    """For any question, the result is one of the spoken sentences, is not a question, and is the same each time."""
    found = best_match(question, sentences(talk), ignore=NAMES)
    assert found == best_match(question, sentences(talk), ignore=NAMES)
    assert found is None or ((found.speaker, found.text) in talk and not is_question(found.text))


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Where is it?", True),
        ("so what time is it", True),
        ("Could you open the door", True),
        ("Tell me who is coming", True),
        ("How it works is strange", True),
        ("When I was young I sang", False),
        ("What I want is tea", False),
        ("The key is under the pot", False),
        ("", False),
        ("So", False),
    ],
)
def test_asking_and_telling(text: str, asks: bool) -> None:
    """A question is recognised without its question mark too."""
    assert is_question(text) is asks


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
    assert meaning_stem(left) == meaning_stem(right)
