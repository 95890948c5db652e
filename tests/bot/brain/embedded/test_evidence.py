"""How the embedded responder chooses the sentence that answers a question.

The evening and its questions were written for these tests, and the rules were tuned on them. They guard against
regressions; they are no measurement of quality.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.brain.embedded.evidence import Evidence, asks_about_something, best_match, content_stems
from compaction.language.text import is_question
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
    return [Evidence(text, PartKind.TURN, speaker) for speaker, text in talk]


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
        ("What did Cy say about the budget?", 5),
    ],
)
def test_the_fitting_sentence_is_found(question: str, answer: int) -> None:
    """The matching sentence is found however the question is worded, and a later correction wins over the old value."""
    said = sentences(TALK)
    assert best_match(question, said, ignore=NAMES) is said[answer]


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
        ("Wann kommt Cy?", None),
        ("Wo ist Cy?", None),
    ],
)
def test_the_fitting_sentence_is_found_in_german(question: str, answer: int | None) -> None:
    """The same rules find the matching sentence of a German talk, and nothing if nobody spoke about the subject."""
    said = sentences(GERMAN_TALK)
    assert best_match(question, said, ignore=NAMES) is (None if answer is None else said[answer])


@pytest.mark.parametrize(
    "question",
    [
        "What is the name of the volcano?",
        "Roomtone, how are you?",
        "Roomtone?",
        "Who won the football match?",
        "What did Zoe say?",
        "Where is Bo?",
        "When does Bo come?",
        "What do you think?",
    ],
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


CALL = replace(sentences([("Ada", "Roomtone, remember that the gate code is 4411.")])[0], to_bot=True)


@pytest.mark.parametrize(
    ("question", "talk", "called"),
    [
        ("What is the gate code?", ["We painted the shed."], True),
        ("What is the gate code?", ["The old gate squeaks."], True),
        ("What is the gate code?", ["The gate code is 7702."], False),
        ("What colour is the gate?", ["We painted the gate green."], False),
    ],
)
def test_what_was_told_to_the_bot_answers_what_nobody_else_spoke_of(
    question: str, talk: list[str], called: bool
) -> None:
    """It needs more of the question than what people said among themselves."""
    said = sentences([("Bo", text) for text in talk])
    found = best_match(question, [*said, CALL], ignore=NAMES)
    assert found is (CALL if called else said[-1])


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("What happened at the harbour in the last minutes?", "Roomtone, summarise the last ten minutes."),
        ("How do I delete everything that you know about me?", "Roomtone, delete my data."),
    ],
)
def test_a_request_to_the_bot_is_no_answer(question: str, wanted: str) -> None:
    """It has a word of the question, and tells nothing about it."""
    said = [replace(sentences([("Ada", wanted)])[0], to_bot=True)]
    assert best_match(question, said, ignore=NAMES, asker="Ada") is None


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
    assert found is None or ((found.speaker, found.text) in talk and not is_question(found.text))


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


EVENING = """Ada: Hello everyone, sorry I am late, the bus broke down near the bridge.
Ben: No worries, we only just started the game.
Chloe: I made popcorn, the salty kind.
Ada: My dog is called Biscuit and he ate my left shoe this morning.
Ben: That is funny, mine only eats grass.
Chloe: By the way, my daughter turned nine last week and wants a telescope.
Ben: I promised my boss to finish the report by Thursday.
Ada: The rent for the new flat is eleven hundred euros a month.
Chloe: That sounds expensive to me.
Ben: I moved here from Dublin in two thousand and twelve.
Ada: Let us order pizza at half past eight.
Chloe: I can't have cheese, so please get me the one with olives.
Ben: The wifi password is purple monkey dishwasher.
Ada: My brother Tom works as a pilot for a small airline.
Chloe: We have to be at the airport by five on Sunday.
Ben: The meeting was moved to room two hundred and four.
Ada: I lost my umbrella in the cinema.
Chloe: I think the movie about the whales was the best one this year.
Ben: I bought a second hand guitar for ninety pounds.
Ada: My favourite colour is dark green.
Chloe: The dentist said I need a crown on the left side.
Ben: Our team won the quiz by three points.
Ada: The recipe needs two eggs and a spoon of honey.
Chloe: My neighbour Mrs Fielding keeps bees on the roof.
Ben: I will pick up the cake from the bakery on Mill Street.
Ada: The boiler makes a strange noise again.
Chloe: The landlord is sending a plumber on Tuesday.
Ben: I parked the van behind the library.
Ada: Actually, let us order the pizza at nine instead.
Chloe: My grandmother was born in Krakow.
Ben: The spare batteries are in the drawer under the sink.
Ada: I am reading a book about the history of salt.
Chloe: I never drink coffee after four.
Ben: We are going to name the boat Serendipity.
Ada: The exam is on the third of June.
Chloe: I paid forty dollars for the tickets.
Ben: Nice, that is a good price.
Ada: Does anyone know what time the shop closes?
Chloe: It closes at ten tonight.
Ben: Roomtone, what is the name of Ada's dog.""".splitlines()

# Each question with a pattern that the right sentence contains, or None if nobody spoke about the subject.
ASKED: list[tuple[str, str | None]] = [
    ("What is the name of Ada's dog?", "Biscuit"),
    ("Roomtone, what's Ada's dog called?", "Biscuit"),
    ("How old is Chloe's daughter?", "nine"),
    ("What does Chloe's daughter want?", "telescope"),
    ("When does Ben have to finish the report?", "Thursday"),
    ("How much is the rent for the flat?", "eleven"),
    ("What does the new flat cost?", "eleven"),
    ("Where did Ben move from?", "Dublin"),
    ("When did Ben move here?", "two thousand"),
    ("What time are we ordering pizza?", "nine"),
    ("What can Chloe not eat?", "cheese"),
    ("What's the wifi password?", "monkey"),
    ("What does Ada's brother do for a living?", "pilot"),
    ("What is Ada's brother's name?", "Tom"),
    ("When do we need to leave for the airport?", "five"),
    ("Which room is the meeting in?", "204|two hundred"),
    ("Where did Ada lose her umbrella?", "cinema"),
    ("Which movie did Chloe like best?", "whales"),
    ("How much did Ben pay for the guitar?", "ninety"),
    ("What is Ada's favorite color?", "green"),
    ("Why does Chloe need the dentist?", "crown"),
    ("Who won the quiz?", "three points"),
    ("How many eggs does the recipe need?", "two eggs"),
    ("Who keeps bees?", "Fielding"),
    ("Where does Ben get the cake?", "Mill Street"),
    ("What is wrong with the boiler?", "noise"),
    ("When is the plumber coming?", "Tuesday"),
    ("Where is the van parked?", "library"),
    ("Where was Chloe's grandmother born?", "Krakow"),
    ("Where are the batteries?", "drawer"),
    ("What is Ada reading?", "salt"),
    ("What will the boat be called?", "Serendipity"),
    ("When is the exam?", "June"),
    ("How much were the tickets?", "forty"),
    ("What did Chloe pay for the tickets?", "forty"),
    ("Roomtone, do you remember where I parked the van?", "library"),
    ("Roomtone tell me the wifi password", "monkey"),
    ("Room tone what did Ada say about the bus", "bridge"),
    ("Who is Tom?", "pilot"),
    ("What kind of popcorn did Chloe make?", "salty"),
    ("What's the capital of France?", None),
    ("Who is the president?", None),
    ("What is Ben's favourite film?", None),
    ("Did anyone feed the cat?", None),
    ("How far is the moon?", None),
    ("What's the weather like tomorrow?", None),
    ("What do you think about elephants?", None),
]
# Words are matched, and nothing knows what they mean: 'What can Chloe not eat?' against 'I can't have cheese'.
RIGHT_AT_LEAST = 0.9


def evening() -> list[Evidence]:
    """Return each line of the evening as a sentence of its own turn."""
    lines = [line.split(": ", 1) for line in EVENING]
    return [Evidence(text, PartKind.TURN, speaker) for speaker, text in lines]


def test_most_questions_find_their_sentence() -> None:
    """Nine in ten questions get the right sentence, or none where there is no answer."""
    wrong = []
    for question, wanted in ASKED:
        found = best_match(question, evening(), ignore=("Roomtone", "Room tone"), asker="Ben")
        right = found is None if wanted is None else found is not None and re.search(wanted, found.text) is not None
        if not right:
            wrong.append((question, found and found.text))
    assert len(wrong) <= (1 - RIGHT_AT_LEAST) * len(ASKED), wrong


@pytest.mark.parametrize("question", [question for question, wanted in ASKED if wanted is None])
def test_nothing_is_made_up(question: str) -> None:
    """A question about something that nobody mentioned gets no sentence."""
    assert best_match(question, evening(), ignore=("Roomtone", "Room tone"), asker="Ben") is None
