"""Who said which words of a turn, and which answers belong to a question."""

from __future__ import annotations

from dataclasses import replace

from compaction.memory.passage import Passage, PassageId
from compaction.memory.passage_statements import statements_in_quote, statements_in_turn
from compaction.model import Turn, TurnKind, TurnPart
from tests.compaction.memory.recall_index_contract import EVENING, turn


def both(seq: int, *said: tuple[str, str]) -> Turn:
    """Return a turn in which several people spoke at once."""
    return replace(turn(seq, ""), parts=tuple(TurnPart(f"id-{who}", who, text) for who, text in said))


def passage(source: Turn, *around: Turn) -> Passage:
    """Return a turn's passage with the turns around it."""
    return Passage(PassageId(1), EVENING, source, around=tuple(sorted((source, *around), key=lambda each: each.seq)))


def test_each_speaker_of_a_turn_states_their_own_words() -> None:
    """Two people who speak in the same turn make two statements. One person who speaks twice in the turn makes one."""
    source = both(4, ("Ada", "The code is 4411."), ("Bob", "I live in Rome."), ("Ada", "Write it down."))
    assert [(each.speaker, each.text, each.seq) for each in statements_in_turn(passage(source), source)] == [
        ("id-Ada", "The code is 4411.\nWrite it down.", 4),
        ("id-Bob", "I live in Rome.", 4),
    ]


def test_a_short_answer_goes_with_the_question_before_it() -> None:
    """A short answer is linked to the question before it. What somebody else says at the same time is not an answer."""
    question = turn(3, "Is the raid still on Monday?")
    source = both(
        4, ("Ada", "No, Sunday now."), ("Bob", "I have just been to the dentist and she says all my teeth are fine")
    )
    assert [each.answered for each in statements_in_turn(passage(source, question), source)] == [
        "Is the raid still on Monday?",
        "",
    ]


def test_a_question_claims_its_answers() -> None:
    """The quote of a question has the statements that answer the question. The question itself is not a statement."""
    question = both(3, ("Bob", "Is the raid still on Monday?"), ("Cy", "We have six chairs."))
    answer = turn(4, "No, Sunday now.")
    found = statements_in_quote(passage(question, answer), statements_in_turn(passage(question, answer), question))
    assert [(each.text, each.seq, each.answered) for each in found] == [
        ("We have six chairs.", 3, ""),
        ("No, Sunday now.", 4, "Is the raid still on Monday?"),
    ]


def test_the_bot_and_the_forgotten_state_nothing() -> None:
    """The bot's turns and forgotten turns have no statements, because only what people said can be out of date."""
    for source in (replace(turn(0, "It is on Monday."), kind=TurnKind.ASSISTANT), replace(turn(0, ""), parts=())):
        assert statements_in_turn(passage(source), source) == ()
