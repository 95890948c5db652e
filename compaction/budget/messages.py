"""The messages of any model call, and which of them belong together.

A call of a tool and its results are one bundle: a provider refuses one without the other, so they stay or go as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.payload import PartKind

SYSTEM_ROLES = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class MessageToolCall:
    """One call of a tool that a model asked for. `arguments` is JSON, as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message for a model: what it is sent, and what is known of it besides.

    `role`: system, user, assistant or tool. `tool_calls`: what an assistant asked for; `tool_call_id`: which of them
    a tool answers, and `name` that tool. `kind`: what part of a payload it is, where that is known. `timestamp`: UTC
    epoch seconds. `step`: the model call during which it came up, counted from 0. `path`: the file, attachment or
    frame whose content it holds.
    """

    role: str
    content: str
    tool_calls: tuple[MessageToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    kind: PartKind | None = None
    timestamp: float | None = None
    step: int | None = None
    path: str | None = None

    @property
    def is_system(self) -> bool:
        """Return whether it instructs."""
        return self.role in SYSTEM_ROLES

    @property
    def is_tool_output(self) -> bool:
        """Return whether a tool said it."""
        return self.role == "tool"


def group_messages(messages: Sequence[Message]) -> list[tuple[int, ...]]:
    """Return the positions of messages that belong together, in the order of their first ones.

    A tool's answer belongs to the latest call of its id before it. One without a call stands alone.
    """
    found: list[list[int]] = []
    asked_in: dict[str, list[int]] = {}
    for at, message in enumerate(messages):
        bundle = asked_in.get(message.tool_call_id) if message.is_tool_output and message.tool_call_id else None
        if bundle is None:
            bundle = []
            found.append(bundle)
        bundle.append(at)
        for call in message.tool_calls:
            asked_in[call.id] = bundle
    return [tuple(bundle) for bundle in found]


def message_steps(messages: Sequence[Message]) -> list[int]:
    """Return at which step each message came up: its own word, or how many answers of the model stand before it."""
    found: list[int] = []
    answers = 0
    for message in messages:
        if message.step is not None:
            answers = max(answers, message.step)
            found.append(message.step)
        else:
            found.append(answers)
        if message.role == "assistant":
            answers += 1
    return found
