"""What is searched for a question: its own words, or what it refers to."""

from __future__ import annotations

import pytest

from compaction.language.terms import normalized_words
from compaction.memory.quote_search import EXCHANGE_TURNS, last_exchange, searches_for
from compaction.model import Seq, Turn, TurnKind, TurnPart

EXCHANGE = "what did Leo think of the dwarves? He was against hiring them for the mine."


@pytest.mark.parametrize(
    ("question", "exchange", "with_exchange", "alone"),
    [
        ("What's the code of the gym locker?", "", False, True),
        ("What's the code of the gym locker?", EXCHANGE, False, True),
        ("When's the cabin?", "", False, True),
        # It may refer to the exchange, and may not.
        ("And when's the cabin?", EXCHANGE, True, True),
        ("Why was he against them?", EXCHANGE, True, False),
        ("And what else?", EXCHANGE, True, False),
        # No question.
        ("Go on, the other side.", EXCHANGE, True, False),
        ("Roll two dice for the dwarves.", "", True, False),
        ("And what else?", "", False, False),
        ("Haha, yes!", " ", False, False),
    ],
)
def test_a_question_is_searched_with_what_it_refers_to(
    question: str, exchange: str, *, with_exchange: bool, alone: bool
) -> None:
    """One without content words searches nothing, unless it continues an exchange. What the exchange is about must be
    met more closely than a question.
    """
    both = " ".join(normalized_words(f"{exchange} {question}"))
    expected = [both] * with_exchange + [question] * alone
    found = searches_for(question, exchange)
    assert [each.text for each in found] == expected
    assert [each.least > 0.0 for each in found] == [True] * with_exchange + [False] * alone


def turn(seq: int, who: str, *, answers: int | None = None) -> Turn:
    """Return a turn of Ada, Bob or the bot."""
    kind = TurnKind.ASSISTANT if who == "Bot" else TurnKind.SPEECH
    of = None if answers is None else Seq(answers)
    return Turn(Seq(seq), kind, float(seq), float(seq), (TurnPart(who, who, f"Words {seq}."),), answers=of)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ([turn(1, "Ada"), turn(2, "Bob")], []),
        ([turn(1, "Ada"), turn(2, "Bot", answers=1), turn(3, "Bob")], [1, 2]),
        # What it told the asker counts more than what it told somebody else since.
        ([turn(1, "Ada"), turn(2, "Bot", answers=1), turn(3, "Bob"), turn(4, "Bot", answers=3)], [1, 2]),
        ([turn(1, "Bob"), turn(2, "Bot", answers=1), turn(3, "Bob"), turn(4, "Bot", answers=3)], [3, 4]),
        ([turn(2, "Bot", answers=1)], [2]),
        ([turn(1, "Bot"), *(turn(2 + at, "Bob") for at in range(EXCHANGE_TURNS))], []),
    ],
)
def test_the_last_exchange_is_the_askers_if_they_had_one(window: list[Turn], expected: list[int]) -> None:
    """It is the bot's answer with the turn that it answers, and over after a few turns."""
    assert [each.seq for each in last_exchange(window, ["Ada"])] == expected
