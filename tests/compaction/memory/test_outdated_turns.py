"""Tests of which turns are outdated by a fact that supersedes another."""

from __future__ import annotations

import pytest

from compaction.memory.outdated_turns import outdated_turns
from compaction.model import Fact, FactKind, Seq, Turn, TurnKind, TurnPart


def _fact(text: str, *turns: int, kind: FactKind = FactKind.LASTING, subject: str = "", quoted: bool = False) -> Fact:
    return Fact(tuple(map(Seq, turns)), kind, "Ada", 0.0, text, subject=subject, quoted=quoted)


def _said(**words: str) -> dict[Seq, Turn]:
    return {
        seq: Turn(seq, TurnKind.SPEECH, 0.0, 0.0, (TurnPart("ada", "Ada", text),))
        for seq, text in ((Seq(int(name.removeprefix("turn"))), text) for name, text in words.items())
    }


def test_only_the_turns_that_say_the_old_value_are_outdated() -> None:
    """The price of the repair still holds when the day has changed."""
    said = _said(
        turn1="Ada has a car until Thursday", turn2="they said six hundred, maybe seven", turn3="back on the first"
    )
    old = _fact("Ada's car is in the garage until Thursday, 600 or maybe 700, back on the 1st.", 1, 2, 3)
    new = _fact("Ada's car, at 600 or maybe 700, is ready on the 12th.", 9)
    assert outdated_turns(old, new, said) == (1, 3)


def test_a_fact_that_says_more_outdates_nothing() -> None:
    """One sentence that says what an earlier one said, and something new, takes nothing back."""
    said = _said(turn1="four out of ten from me", turn2="nine")
    old = _fact("Ada gives the film four out of ten, Ben nine.", 1, 2, kind=FactKind.OTHER)
    new = _fact("Ada gives the film four out of ten, Ben nine, Cleo seven.", 3, kind=FactKind.OTHER)
    assert outdated_turns(old, new, said) == ()


@pytest.mark.parametrize("kind", [FactKind.OPEN, FactKind.DOING])
def test_an_answered_question_and_a_game_that_went_on_were_not_wrong(kind: FactKind) -> None:
    """'Who bakes?' is not taken back by 'My sister', and no move of a game by the next one."""
    said = _said(turn1="two cakes it is")
    old = _fact("Ada wants to know of the 2 cakes.", 1, kind=kind)
    assert outdated_turns(old, _fact("Ben bakes 3 cakes.", 2), said) == ()
    assert outdated_turns(_fact("Ben bakes 2 cakes.", 1), _fact("Ben has baked 3 cakes.", 2, kind=kind), said) == ()


def test_an_open_fact_leads_from_its_question_to_the_answer() -> None:
    """Only the turn that asks is answered; what was said beside it stands."""
    said = _said(turn1="who bakes", turn2="no nuts in the cake")
    old = _fact("Ada asks who bakes the cake without nuts.", 1, 2, kind=FactKind.OPEN)
    assert outdated_turns(old, _fact("Ben's sister bakes the cake.", 3), said) == (1,)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("The landlord is reached under 4905.", "The landlord has the new number 7754.", "call 4905"),
        ("Marisol drives to the market.", "Ludwig drives to the market, since Marisol is out.", "Marisol drives"),
        ("Ada cooks lentils on Friday.", "Ada cooks chili on Friday.", "lentils, then"),
        ("Ada runs the game in March.", "Ben runs the game in March.", "I can do March"),
        ("Ada eats meat.", "Ada does not eat meat.", "I eat meat"),
    ],
)
def test_another_value_outdates_the_turn(old: str, new: str, words: str) -> None:
    """Another number, person, dish or sign, in whatever words the turn gave the old one."""
    subject = "Ada" if old.startswith("Ada") else ""
    assert outdated_turns(_fact(old, 1, subject=subject), _fact(new, 2), _said(turn1=words)) == (1,)


def test_a_fact_in_own_words_outdates_all_turns() -> None:
    """The extractive summariser supersedes only what is replaced for certain."""
    old = _fact("The quiz is on Wednesday.", 1, 2, kind=FactKind.OPEN, quoted=True)
    assert outdated_turns(old, _fact("Sunday now.", 3, quoted=True), {}) == (1, 2)
