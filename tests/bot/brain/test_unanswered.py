"""Questions whose answer was stopped, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.brain.question import MOST_CHARS, Spoken
from bot.brain.unanswered import MOST, OLDEST_S, UnansweredQuestions
from bot.words import Words
from compaction.model import Seq, Turn, TurnKind, TurnPart, UtteredWords
from tests.fakes import questions

ADA, BO = 1, 2


def asked(seq: int, who: int = ADA, text: str = "When is it?", *beside: TurnPart) -> Spoken:
    """Return a question of somebody, which ended at its number in seconds."""
    parts = (*beside, TurnPart.spoken(str(who), f"person {who}", [UtteredWords(float(seq), text)]))
    turn = Turn(Seq(seq), TurnKind.SPEECH, float(seq), float(seq), parts)
    return questions.asked(turn, f"u{seq}", ended_at=float(seq), asker_id=who)


def test_whoever_goes_on_has_one_question() -> None:
    """Both halves are one, with what others said only where it stands."""
    unanswered = UnansweredQuestions(Words())
    first = asked(1, ADA, "When does it begin?", TurnPart("2", "Bo", "Hm."))
    unanswered.keep(first, now=2.0)
    assert unanswered.continued_by(BO, ended_at=3.0) is None
    assert unanswered.continued_by(ADA, ended_at=1.0) is None
    before = unanswered.continued_by(ADA, ended_at=3.0)
    assert before is first
    both = asked(3, ADA, "The film.", TurnPart("2", "Bo", "Which?")).continues(before)
    assert [turn.seq for turn in both.turns] == [1, 3]
    assert [(part.speaker_id, part.text) for part in both.whole.parts] == [
        ("2", "Which?"), ("1", "When does it begin? The film."),
    ]  # fmt: skip
    assert not both.is_same_as(replace(both, earlier=()))
    unanswered.keep(both, now=4.0)
    assert (len(unanswered), unanswered.continued_by(ADA, ended_at=5.0)) == (1, both)
    unanswered.drop_of(ADA)
    assert unanswered.take_due(5.0) is None


def test_ten_halves_are_one_question_of_bounded_length() -> None:
    """The newest are kept."""
    question = asked(0, ADA, "x" * 300)
    for seq in range(1, 10):
        question = asked(seq, ADA, "x" * 300).continues(question)
    assert [turn.seq for turn in question.turns] == [6, 7, 8, 9]
    assert sum(len(turn.text) for turn in question.turns) <= MOST_CHARS


def test_owed_answers_are_given_in_their_order() -> None:
    """At most two, each once, and not after half a minute."""
    unanswered = UnansweredQuestions(Words())
    for seq in range(MOST + 1):
        unanswered.keep(asked(seq, who=10 + seq), now=float(seq))
    assert [unanswered.take_due(MOST + 1.0) for _ in range(MOST + 1)] == [
        asked(1, who=11), asked(2, who=12), None,
    ]  # fmt: skip
    unanswered.keep(asked(5), now=5.0)
    assert unanswered.take_due(5.0 + OLDEST_S + 0.1) is None


@pytest.mark.parametrize("goes_on", [True, False])
def test_who_has_heard_a_sentence_is_owed_nothing(goes_on: bool) -> None:
    """They may go on all the same."""
    unanswered, question = UnansweredQuestions(Words()), asked(1)
    unanswered.keep(question, now=2.0)
    unanswered.on_answered(question, goes_on=goes_on)
    assert (unanswered.continued_by(ADA, ended_at=3.0) is question) is goes_on
    assert unanswered.take_due(3.0) is None
