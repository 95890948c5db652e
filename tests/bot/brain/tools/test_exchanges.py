"""Tool results stay in the prompt after their question, up to a number of questions."""

from __future__ import annotations

from bot.brain.tools.toolbox import (
    MOST_QUESTIONS,
    MOST_STEPS,
    ToolExchange,
    ToolExchanges,
)
from compaction.model import Seq
from compaction.payload import MessageToolCall

STEP = ToolExchange((MessageToolCall("c", "look", "{}"),), ("A map.",), "Hm.")


def test_the_newest_are_kept() -> None:
    """The newest steps are kept, and only for turns that are in the prompt."""
    exchanges = ToolExchanges()
    for turn in range(20):
        exchanges.record(Seq(turn), [STEP])
    assert sorted(exchanges.messages(range(20))) == list(range(20 - MOST_QUESTIONS, 20))
    assert sorted(exchanges.messages({3, 15})) == [15]


def test_what_two_models_did_for_a_question_is_kept() -> None:
    """Speech-to-speech may fail after a call, and the language model that answers then calls tools too."""
    exchanges, second = ToolExchanges(), ToolExchange((MessageToolCall("d", "roll", "{}"),), ("Six.",))
    exchanges.record(Seq(4), [STEP])
    exchanges.record(Seq(4), [second])
    assert exchanges.messages({4})[4] == [*STEP.messages(), *second.messages()]
    exchanges.record(Seq(4), [STEP] * MOST_STEPS)
    assert exchanges.messages({4})[4] == STEP.messages() * MOST_STEPS
