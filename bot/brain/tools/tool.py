"""A tool that a language model may call: its name, what the model is told, what is done, and for whom. Values only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

# About 2,000 tokens: more of one output is cut when it is old anyway.
MAX_CHARS = 6_000
# A reply that hangs on a tool for longer has been given up by its listeners.
TIMEOUT_S = 8.0


class Permission(StrEnum):
    """On whose behalf a tool may run."""

    # Also on nobody's: a thought of the bot's own.
    ANYONE = "anyone"
    # Who is in the channel now.
    MEMBERS = "members"
    # Of those, who may manage the server.
    MODERATORS = "moderators"


class ToolError(Exception):
    """A tool could not do what was asked. The message is a plain sentence for the model, never a secret."""


# Called with arguments that fit the tool's schema; returns what the model reads. Raises `ToolError`.
ToolFunction: TypeAlias = Callable[[Mapping[str, object]], Awaitable[str]]


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class RoomTool:
    """One tool. `parameters` is the JSON schema of its arguments.

    `side_effects`: it changes something outside. Then it runs on behalf of somebody alone, and only when that person
    asked for it in words of their own: one of `words` is what they must have said (a word, or its beginning).
    `available`: whether it can be called at present. `timeout_s`, `max_chars`: how long it may take and how much of
    its output is read.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    call: ToolFunction
    permission: Permission = Permission.ANYONE
    side_effects: bool = False
    words: tuple[str, ...] = ()
    timeout_s: float = TIMEOUT_S
    max_chars: int = MAX_CHARS
    available: Callable[[], bool] = _always
