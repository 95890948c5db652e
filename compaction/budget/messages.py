"""Which messages of a model call belong together, and how old they are.

A tool call and its results form a group. Providers refuse one without the other, so both are kept or both left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.payload import PayloadPart


def is_tool_output(message: PayloadPart) -> bool:
    return message.role == "tool"


def group_messages(messages: Sequence[PayloadPart]) -> list[tuple[int, ...]]:
    """Return groups of positions of messages that belong together. Groups are ordered by their first message.

    A tool output belongs to the latest earlier call with its id. Without such a call the output is a group of its own.
    """
    groups: list[list[int]] = []
    group_of_call: dict[str, list[int]] = {}
    for at, message in enumerate(messages):
        group = group_of_call.get(message.tool_call_id) if message.tool_call_id else None
        if group is None:
            group = []
            groups.append(group)
        group.append(at)
        for call in message.tool_calls:
            group_of_call[call.id] = group
    return [tuple(group) for group in groups]


def message_steps(messages: Sequence[PayloadPart]) -> list[int]:
    """Return the step of each message: how many answers of the model stand before it."""
    steps: list[int] = []
    answers = 0
    for message in messages:
        steps.append(answers)
        answers += message.role == "assistant"
    return steps


def next_step(messages: Sequence[PayloadPart]) -> int:
    """Return the step of the model call that sends these messages."""
    return sum(message.role == "assistant" for message in messages)
