"""An answer in which somebody says only that it is they is kept with its question; half of the talks are apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.model import FactKind, TurnKind
from compaction.summary.statements import statements_of
from tests.compaction.summary.test_cases import standing
from tests.compaction.turn_store_contract import bot_turn, turn

# Talks of which the last line answers the first one. Nothing was tuned on those that Mara begins.
ANSWERED = (
    ("Ada: Who plays tank?", "Bob: I'll."),
    ("Ada: Who plays tank?", "Bob: Me."),
    ("Ada: Who plays tank?", "Bob: Not me.", "Cy: I will!"),
    ("Ada: Who plays tank?", "Bob: What?", "Cy: I do."),
    ("Ada: Does anybody bring the tent?", "Bob: Okay, I can."),
    ("Mara: Did you pay the landlord?", "Jon: We did."),
    ("Mara: Who has the key to the cellar?", "Jon: I do, I do!"),
    ("Mara: Who wants to sit beside the window?", "Jon: Hm.", "Eva: I would."),
    ("Mara: Can somebody lend me a drill?", "Jon: Mine's broken.", "Eva: I can."),
    ("Mara: Which of you feeds the cat in August?", "Jon: That'll be me."),
    ("Ada: Wer spielt den Tank?", "Bob: Ich."),
    ("Ada: Wer bringt den Kuchen mit?", "Bob: Ich nicht.", "Cy: Ich."),
    ("Mara: Wer hat den Schlüssel zum Keller?", "Jon: Also ich."),
    ("Mara: Wer füttert im August die Katze?", "Jon: Wir."),
)
# Talks of which the last line answers nothing.
OPEN = (
    ("Ada: Who plays tank?", "Ada: I will."),
    ("Ada: Who plays tank?", "Bob: Not me."),
    ("Ada: Who plays tank?", "Bob: The tank needs a new axe from Oslo.", "Cy: Me."),
    ("Ada: Who brings the tent?", "Bob: I'm sorry."),
    ("Ada: Who brings the tent?", "Bob: I'm back."),
    ("Ada: Who brings the tent?", "Bob: Okay, we're here."),
    ("Ada: Wer bringt das Zelt mit?", "Bob: Ich bin wieder da."),
    ("Ada: Wer spielt den Tank?", "Bob: Ich nicht."),
    ("Mara: Who has the key to the cellar?", "Jon: Not me.", "Eva: Nor I."),
    ("Mara: Who has the key to the cellar?", "Jon: The cellar was flooded in March.", "Eva: I was."),
    ("Mara: Wer hat den Schlüssel zum Keller?", "Jon: Ich nicht."),
)
# One has something else between the question and its answer. The share that holds.
LEAST_APART = 0.85


def told(talk: tuple[str, ...], size: int) -> list[tuple[tuple[int, ...], FactKind, str]]:
    """Return turns, kind and subject of the facts that stand after a talk, folded in batches of this size."""
    turns = [turn(seq, line.partition(": ")[2], speaker=line.partition(": ")[0]) for seq, line in enumerate(talk)]
    return [(tuple(fact.turns), fact.kind, fact.attributed_text) for fact in standing(turns, size)]


def joins(talk: tuple[str, ...], size: int) -> bool:
    """Return whether a fact has the words of question and answer and who said them, and the question is not open."""
    facts, last = told(talk, size), len(talk) - 1
    answerer = talk[last].partition(": ")[0]
    is_open = any(kind is FactKind.OPEN for _, kind, _ in facts)
    whole = [text for turns, _, text in facts if turns == (0, last)]
    return not is_open and len(whole) == 1 and whole[0].startswith(talk[0]) and f" {answerer}: " in whole[0]


@pytest.mark.parametrize("size", [20, 1])
@pytest.mark.parametrize(("apart", "least"), [(False, 1.0), (True, LEAST_APART)])
def test_a_bare_answer_is_kept_with_its_question(size: int, apart: bool, least: float) -> None:
    """In the tuned half all are, in the other one most."""
    talks = [each for each in ANSWERED if each[0].startswith("Mara") is apart]
    left = [each for each in talks if not joins(each, size)]
    assert 1.0 - len(left) / len(talks) >= least, left


@pytest.mark.parametrize("size", [20, 1])
@pytest.mark.parametrize("talk", OPEN, ids=" ".join)
def test_what_answers_nothing_leaves_the_question_open(talk: tuple[str, ...], size: int) -> None:
    """Who asked does not answer, 'Not me' leaves open who it is, and what says something of its own ends the question's
    reach.
    """
    assert (talk[0],) == tuple(text for turns, kind, text in told(talk, size) if kind is FactKind.OPEN and 0 in turns)


def test_the_bot_and_comings_answer_nothing() -> None:
    """What the bot says of itself is no answer of a person."""
    asked = turn(0, "Who plays tank?")
    for answer in (bot_turn(1, "I will."), replace(turn(1, "I'm here."), kind=TurnKind.MEMBERSHIP)):
        assert [each.turns for each in statements_of([asked, answer])] == [(0,), (1,)]
