"""Which messages form one group, and the step to which a message belongs."""

from __future__ import annotations

from compaction.budget.messages import group_messages, message_steps, next_step
from compaction.payload import MessageToolCall, PartKind, make_part
from tests.compaction.budget.talk import said, use


def test_calls_and_their_results_are_one_group() -> None:
    """Calls and their results form one group, also with several calls at once, results in any order and an id used
    again. A result without a call is a group of its own.
    """
    calls = (MessageToolCall("a", "look", "{}"), MessageToolCall("b", "look", "{}"))
    messages = [
        said("Look."),
        make_part("assistant", PartKind.TOOL, "", tool_calls=calls),
        make_part("tool", PartKind.TOOL, "second", tool_call_id="b"),
        make_part("tool", PartKind.TOOL, "first", tool_call_id="a"),
        *use("look", "{}", "again", call_id="a"),
        make_part("tool", PartKind.TOOL, "of nobody", tool_call_id="z"),
    ]
    assert group_messages(messages) == [(0,), (1, 2, 3), (4, 5), (6,)]
    assert (message_steps(messages), next_step(messages)) == ([0, 0, 1, 1, 1, 2, 2], 2)
