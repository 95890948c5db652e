"""How often the embedded responder finds the right sentence in an evening of small talk.

The evening and its questions were written for this test, and the rules were tuned on them. The test guards against
regressions; it is no measurement of quality.
"""

from __future__ import annotations

import re

import pytest

from bot.brain.embedded.evidence import Evidence, best_match
from compaction.payload import PartKind

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
    return [Evidence(text, PartKind.TURN, order, speaker) for order, (speaker, text) in enumerate(lines)]


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
