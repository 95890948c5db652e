"""Tool results stay in the prompt after their question, up to a number of questions."""

from __future__ import annotations

from bot.brain.tools.exchanges import (
    MOST_QUESTIONS,
    MOST_STEPS,
    ToolExchange,
    ToolExchanges,
)
from bot.llm.port import ChatMessage, ChatRole
from compaction.model import Seq
from compaction.payload import MessageToolCall

STEP = ToolExchange((MessageToolCall("c", "look", "{}"),), ("A map.",), "Hm.")


def _kept(*turns: int) -> ToolExchanges:
    exchanges = ToolExchanges()
    for turn in turns:
        exchanges.record(Seq(turn), [STEP])
    return exchanges


def test_a_step_is_a_call_and_its_result() -> None:
    """A step becomes the message with the call, followed by its result."""
    assert STEP.messages() == [
        ChatMessage(ChatRole.ASSISTANT, "Hm.", tool_calls=STEP.calls),
        ChatMessage(ChatRole.TOOL, "A map.", tool_call_id="c", name="look"),
    ]


def test_the_newest_are_kept() -> None:
    """The newest steps are kept, and only for turns that are in the prompt."""
    exchanges = _kept(*range(20))
    assert sorted(exchanges.messages(range(20))) == list(range(20 - MOST_QUESTIONS, 20))
    assert sorted(exchanges.messages({3, 15})) == [15]


def test_everything_can_be_let_go() -> None:
    """All steps can be deleted at once, for when a person's words are forgotten."""
    exchanges = _kept(1, 2)
    exchanges.clear()
    assert exchanges.messages({1, 2}) == {}
    assert exchanges.recorded == 2


def test_a_question_without_calls_leaves_nothing() -> None:
    """A question without tool calls stores nothing."""
    exchanges = ToolExchanges()
    exchanges.record(Seq(1), [])
    assert exchanges.messages({1}) == {}
    assert exchanges.recorded == 0


def test_what_two_models_did_for_a_question_is_kept() -> None:
    """Speech-to-speech may fail after a call, and the language model that answers then calls tools too."""
    exchanges, second = _kept(4), ToolExchange((MessageToolCall("d", "roll", "{}"),), ("Six.",))
    exchanges.record(Seq(4), [second])
    assert exchanges.messages({4})[4] == [*STEP.messages(), *second.messages()]
    exchanges.record(Seq(4), [STEP] * MOST_STEPS)
    assert exchanges.messages({4})[4] == STEP.messages() * MOST_STEPS
