"""Puts the messages of a call into the order that strict chat templates demand. Pure.

OpenAI takes messages of all roles in any order. vLLM and llama.cpp render them with the model's own chat template, and
many templates refuse what they were not made for: Qwen 3.5 a system message that is not the first, Gemma and Mistral
two messages of one person in a row.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from bot.llm.port import ChatRole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BETWEEN = "\n\n"
# Stands where the order demands a message and nobody said anything. The voice leaves it out if a model copies it.
_NOTHING_SAID = "(silence)"
# Around our own instructions where they stand in a message of the people. Nobody in the room can write these marks:
# `compaction.untrusted_text` breaks them in everything that comes from outside.
_INSTRUCTIONS = "<instructions>\n{text}\n</instructions>"


def in_order(messages: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return a call's messages with one system message at the beginning, then user and assistant in turn. No word is
    left out.

    What stands in several messages of one role in a row stands in one, with blank lines between. Tool results follow
    their calls. The last message is a user's or a tool's result. System messages after the first other message keep
    their place, between marks: in a user's message, or below the tool result that they follow.
    """
    heading = list(itertools.takewhile(_is_system, messages))
    ordered = _in_turn(_without_system(messages[len(heading) :]))
    instructions = _BETWEEN.join(str(message["content"]) for message in heading)
    return [{"role": ChatRole.SYSTEM.value, "content": instructions}, *ordered] if instructions else ordered


def _is_system(message: Mapping[str, object]) -> bool:
    return message["role"] == ChatRole.SYSTEM


def _marked(instructions: object) -> str:
    return _INSTRUCTIONS.format(text=instructions)


def _without_system(messages: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return messages with the system messages among them as marked text of the user, or of the tool result before."""
    placed: list[Mapping[str, object]] = []
    for message in messages:
        if not _is_system(message):
            placed.append(message)
        elif placed and placed[-1]["role"] == ChatRole.TOOL:
            # A user's message would need an answer to the result before it.
            placed[-1] = {
                **placed[-1],
                "content": f"{placed[-1]['content']}{_BETWEEN}{_marked(message['content'])}",
            }
        else:
            placed.append({"role": ChatRole.USER.value, "content": _marked(message["content"])})
    return placed


def _in_turn(messages: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return the messages of people, model and tools so that user and assistant take turns, a user first."""
    ordered: list[Mapping[str, object]] = []
    for message in messages:
        before = ordered[-1] if ordered else None
        if before is not None and _is_joined(before, message):
            ordered[-1] = {**before, **message, "content": f"{before['content']}{_BETWEEN}{message['content']}"}
            continue
        if message["role"] == ChatRole.USER and before is not None and before["role"] == ChatRole.TOOL:
            ordered.append(_silence(ChatRole.ASSISTANT))
        if message["role"] == ChatRole.ASSISTANT and before is None:
            ordered.append(_silence(ChatRole.USER))
        ordered.append(message)
    if ordered and ordered[-1]["role"] == ChatRole.ASSISTANT:
        ordered.append(_silence(ChatRole.USER))
    return ordered


def _is_joined(before: Mapping[str, object], message: Mapping[str, object]) -> bool:
    """Return whether two messages in a row become one: not across tool calls, whose results follow them."""
    return (
        before["role"] == message["role"]
        and message["role"] in {ChatRole.USER, ChatRole.ASSISTANT}
        and "tool_calls" not in before
    )


def _silence(role: ChatRole) -> dict[str, object]:
    return {"role": role.value, "content": _NOTHING_SAID}
