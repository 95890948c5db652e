"""The messages of a model call, and which of them belong together.

A tool call and its results form a group. Providers refuse one without the other, so both are kept or both left out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.payload import PartKind
    from compaction.tokens import HasContent

SYSTEM_ROLES = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class MessageToolCall:
    """A tool call that a model asked for. `arguments`: JSON, as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message for a model.

    `role`: system, user, assistant or tool. `tool_calls`: the calls that an assistant message asks for. `tool_call_id`:
    the call that a tool message answers. `name`: the name of that tool.

    The other fields are not sent. `kind`: which part of a payload the message is, if known. `timestamp`: UTC epoch
    seconds. `step`: the model call in which the message came up, from 0. `path`: the file, attachment or frame that it
    holds.
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
        """Return whether the message is an instruction to the model."""
        return self.role in SYSTEM_ROLES

    @property
    def is_tool_output(self) -> bool:
        return self.role == "tool"


def message_json(message: HasContent) -> str:
    """Return a message as a model's server is sent it, in one form for digests and for the record."""
    calls = [
        {"id": call.id, "name": call.name, "arguments": call.arguments} for call in getattr(message, "tool_calls", ())
    ]
    sent: dict[str, object] = {"role": str(message.role), "content": message.content, "tool_calls": calls}
    sent["tool_call_id"] = getattr(message, "tool_call_id", None)
    return json.dumps({name: value for name, value in sent.items() if value or name == "content"})


def group_messages(messages: Sequence[Message]) -> list[tuple[int, ...]]:
    """Return groups of positions of messages that belong together. Groups are ordered by their first message.

    A tool output belongs to the latest earlier call with its id. Without such a call the output is a group of its own.
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
    """Return the step of each message: its own `step`, or else the number of model answers before it."""
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
