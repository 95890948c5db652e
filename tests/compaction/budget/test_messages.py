"""Which messages form one bundle, and the step to which a message belongs."""

from __future__ import annotations

from compaction.budget.messages import Message, MessageToolCall, group_messages, message_steps


def test_calls_and_their_results_are_one_bundle() -> None:
    """Calls of tools and their results form one bundle, also with several calls at once, results in any order and an id
    used again. A result without a call is a bundle of its own.
    """
    messages = [
        Message("user", "Look."),
        Message("assistant", "", tool_calls=(MessageToolCall("a", "look", "{}"), MessageToolCall("b", "look", "{}"))),
        Message("tool", "second", tool_call_id="b"),
        Message("tool", "first", tool_call_id="a"),
        Message("assistant", "", tool_calls=(MessageToolCall("a", "look", "{}"),)),
        Message("tool", "again", tool_call_id="a"),
        Message("tool", "of nobody", tool_call_id="z"),
    ]
    assert group_messages(messages) == [(0,), (1, 2, 3), (4, 5), (6,)]


def test_steps_are_counted_by_the_models_answers() -> None:
    """The step of a message is the number of the model's answers before it, unless the message has a step
    of its own.
    """
    messages = [
        Message("system", "…"),
        Message("user", "…"),
        Message("assistant", "…"),
        Message("tool", "…"),
        Message("assistant", "…", step=7),
        Message("user", "…"),
    ]
    assert message_steps(messages) == [0, 0, 0, 1, 7, 8]
