"""A question stays open until somebody else answers it; the cases are in `answered_questions`.

Each talk is folded twice: as one batch, and turn by turn.
"""

from __future__ import annotations

import pytest

from compaction.model import FactKind
from tests.compaction.summary.answered_questions import QUESTIONS, QuestionCase
from tests.compaction.summary.test_cases import standing
from tests.compaction.turn_store_contract import turn

# Some answers say nothing that was asked in the same words; their questions stay open. The shares that hold.
LEAST_ANSWERED = 0.8
LEAST_ANSWERED_APART = 0.8


def is_open(case: QuestionCase, size: int) -> bool:
    """Return whether the question stands as an open one after the talk, folded in batches of this size."""
    turns = []
    for seq, said in enumerate(case.said):
        speaker, _, text = said.partition(": ")
        turns.append(turn(seq, text, speaker=speaker))
    return any(fact.kind is FactKind.OPEN and fact.turns == (0,) for fact in standing(turns, size))


@pytest.mark.parametrize("size", [20, 1])
@pytest.mark.parametrize("case", [each for each in QUESTIONS if not each.answered], ids=lambda case: case.said[-1])
def test_what_is_no_answer_leaves_the_question_open(case: QuestionCase, size: int) -> None:
    """A statement that only shares words with a question takes nothing from it."""
    assert is_open(case, size)


@pytest.mark.parametrize(("apart", "least"), [(False, LEAST_ANSWERED), (True, LEAST_ANSWERED_APART)])
@pytest.mark.parametrize("size", [20, 1])
def test_an_answer_closes_its_question(size: int, apart: bool, least: float) -> None:
    """Most questions that were answered are told as open no more."""
    answered = [each for each in QUESTIONS if each.answered and each.apart is apart]
    left = [each.said for each in answered if is_open(each, size)]
    assert 1.0 - len(left) / len(answered) >= least, left
