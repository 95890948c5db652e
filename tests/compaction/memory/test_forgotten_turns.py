"""Which turns go when Ada is forgotten: her parts, and what the bot answered her, said of her, or said again."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from compaction.memory.forgotten_turns import answers_to_forget, has_part_of, without_part_of, words_in_session
from compaction.memory.restating import forgotten_words
from compaction.model import Seq, Turn, TurnKind, TurnPart
from compaction.summary.port import REACH_TURNS

ADA, BO, BOT = "1", "2", "assistant"
SECRET = "My sister Marta keeps the spare key under the blue flowerpot by the gate."
WORDS = forgotten_words([SECRET], {"Ada"})


def said(seq: int, speaker: str, text: str, *, kind: TurnKind = TurnKind.SPEECH, answers: int | None = None) -> Turn:
    name = {ADA: "Ada", BO: "Bo", BOT: "Roomtone"}[speaker]
    to = None if answers is None else Seq(answers)
    return Turn(Seq(seq), kind, 10.0 * seq, 10.0 * seq + 1, (TurnPart(speaker, name, text),), answers=to)


def replied(seq: int, text: str, *, answers: int | None = None) -> Turn:
    return said(seq, BOT, text, kind=TurnKind.ASSISTANT, answers=answers)


def forgotten_of(turns: list[Turn], *, shown_at: float = inf) -> list[int]:
    """Return the numbers of the bot's turns that go with all of Ada's."""
    theirs = [turn for turn in turns if has_part_of(turn, ADA)]
    return [turn.seq for turn in answers_to_forget(turns, theirs, ADA, WORDS, shown_at=shown_at)]


def test_an_answer_to_them_goes_and_one_to_another_stays() -> None:
    turns = [
        said(0, ADA, SECRET),
        replied(1, "I have noted that.", answers=0),
        said(2, BO, "What is for dinner?"),
        replied(3, "There is soup.", answers=2),
    ]
    assert forgotten_of(turns) == [1]


def test_an_old_answer_counts_by_its_distance() -> None:
    """Turns of earlier versions do not say what they answer: the next one soon after does."""
    near, far = Seq(REACH_TURNS), Seq(REACH_TURNS + 1)
    assert forgotten_of([said(0, ADA, SECRET), replied(near, "I have noted that.")]) == [near]
    assert forgotten_of([said(0, ADA, SECRET), replied(far, "I have noted that.")]) == []


@pytest.mark.parametrize(
    ("turns", "gone"),
    [
        pytest.param([said(20, ADA, SECRET), replied(21, "Noted.")], [21], id="late in the session"),
        pytest.param([said(0, ADA, SECRET), replied(1, "Noted."), replied(2, "Soup.")], [1], id="only the first"),
        pytest.param([said(0, BO, "Soup?"), replied(1, "Soup."), said(2, ADA, SECRET)], [], id="to somebody else"),
        pytest.param(
            [said(0, ADA, SECRET), said(1, BO, "Soup?"), replied(2, "Soup.", answers=1)], [], id="known to be another's"
        ),
        pytest.param(
            [said(0, ADA, "(laughs)", kind=TurnKind.EFFECT), replied(1, "Soup.")], [], id="a laugh is no question"
        ),
    ],
)
def test_an_old_answer_is_that_to_the_last_question(turns: list[Turn], gone: list[int]) -> None:
    assert forgotten_of(turns) == gone


RETOLD = "By the gate is a flowerpot."


@pytest.mark.parametrize(
    ("turns", "gone"),
    [
        pytest.param([said(0, ADA, SECRET), said(1, BO, "So?"), replied(2, RETOLD, answers=1)], [2], id="afterwards"),
        pytest.param([replied(0, RETOLD), said(1, ADA, SECRET)], [], id="before she said it"),
        pytest.param([said(0, BO, "So?"), replied(1, RETOLD, answers=0)], [], id="she never said it"),
        pytest.param(
            [said(0, ADA, SECRET), said(1, BO, "I see a gate, a flowerpot."), replied(2, RETOLD, answers=1)],
            [],
            id="Bo said it too",
        ),
        pytest.param(
            [said(0, ADA, SECRET), replied(1, RETOLD, answers=9), said(2, BO, "I see a gate, a flowerpot.")],
            [1],
            id="Bo said it later",
        ),
    ],
)
def test_what_it_tells_in_other_words_goes(turns: list[Turn], gone: list[int]) -> None:
    """Unless it said so before she did, or somebody else had said these words."""
    assert forgotten_of(turns) == gone


def test_what_it_tells_of_their_screen_goes() -> None:
    """From when it was noted first, though they may never have said a word."""
    turns = [said(0, BO, "So?"), replied(1, RETOLD, answers=0), said(2, BO, "So?"), replied(3, RETOLD, answers=2)]
    assert forgotten_of(turns, shown_at=turns[2].started_at) == [3]


def test_naming_them_or_quoting_them_goes() -> None:
    turns = [
        said(0, ADA, SECRET),
        said(1, BO, "Who has a key?"),
        replied(2, "You could ask Ada.", answers=1),
        replied(3, "The spare key is under the blue flowerpot by the gate.", answers=1),
        replied(4, "Nobody that I know of.", answers=1),
    ]
    assert forgotten_of(turns) == [2, 3]


def test_short_turns_of_common_words_take_nothing_along() -> None:
    """Everybody says 'you can' and 'is there anything else', and the bot in every second answer."""
    phrases = ("You can.", "Let me.", "Thank you.", "Of the.", "Is there anything else?")
    asked = said(0, BO, "When do we meet?")
    answer = replied(1, "You meet on Friday; you can reach Ada. Thank you! Is there anything else?", answers=0)
    theirs = [said(seq, ADA, text) for seq, text in enumerate(phrases, start=2)]
    again = [said(8, BO, "Sorry, when?"), replace(answer, seq=Seq(9), answers=Seq(8))]
    words = forgotten_words(phrases, {"Eve"})
    for turns in ([asked, answer], [asked, answer, *theirs, *again]):
        spoken = [turn for turn in turns if has_part_of(turn, ADA)]
        assert answers_to_forget(turns, spoken, ADA, words) == []


def test_a_name_of_somebody_else_is_no_reason() -> None:
    """Where two people are called Ada, her name alone means nobody in particular."""
    other = Turn(Seq(0), TurnKind.SPEECH, 0.0, 1.0, (TurnPart(BO, "Ada", "Hello."),))
    assert "Ada" in WORDS.names
    assert words_in_session(WORDS, [other], ADA, spoke=True).names == frozenset()
    asked = said(0, BO, "Has anybody seen Ada?")
    assert words_in_session(WORDS, [asked], ADA, spoke=False).names == frozenset()
    assert words_in_session(WORDS, [asked, said(1, ADA, SECRET)], ADA, spoke=True).names == {"Ada"}


def test_a_single_word_of_a_name_means_them_unless_others_have_it_too() -> None:
    """A brother has the same surname; somebody whom nobody heard there may share the first name with anybody."""
    words = forgotten_words([SECRET], {"Ada Miller"})
    theirs = replace(said(0, ADA, SECRET), parts=(TurnPart(ADA, "Ada Miller", SECRET),))
    brother = replace(said(1, BO, "Hello, Ada."), parts=(TurnPart(BO, "Bo Miller", "Hello, Ada."),))
    assert words_in_session(words, [theirs], ADA, spoke=True).name_words == {"Ada", "Miller"}
    assert words_in_session(words, [theirs, brother], ADA, spoke=True).name_words == {"Ada"}
    assert words_in_session(words, [brother], ADA, spoke=False).name_words == frozenset()


def test_words_of_others_in_the_same_turn_stay() -> None:
    """A turn of two people loses one part; a turn of nobody else keeps its number as a tombstone."""
    both = Turn(
        Seq(4), TurnKind.SPEECH, 0.0, 1.0, (TurnPart(ADA, "Ada", SECRET), TurnPart(BO, "Bo", "Pass the bread."))
    )
    left = without_part_of(both, ADA)
    assert [part.text for part in left.parts] == ["Pass the bread."]
    assert not left.tombstone
    alone = without_part_of(said(5, ADA, SECRET), ADA)
    assert (alone.seq, alone.parts, alone.tombstone) == (5, (), True)
