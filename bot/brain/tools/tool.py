"""Tools as values: name and description for the model, function, and who may use it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

# The names of our own tools, which no other tool has.
BUILT_IN_NAMES: Final = frozenset({"memory_search", "recall_turns", "read_attachment", "post_link", "look_at_screen"})
# About 2,000 tokens. The token budget cuts older outputs to less anyway.
MAX_CHARS = 6_000
# Listeners give up on a reply that waits longer for a tool.
TIMEOUT_S = 8.0


class Permission(StrEnum):
    """On whose behalf a tool may run."""

    # The tool may run on anybody's behalf, and also when the bot speaks unasked.
    ANYONE = "anyone"
    # The tool runs for people who are in the voice channel now.
    MEMBERS = "members"
    # The tool runs for people in the voice channel who may manage the server.
    MODERATORS = "moderators"


class ToolError(Exception):
    """A tool failed. The message is a plain sentence for the model and holds no secret."""


# Called with arguments that fit the tool's schema; returns what the model reads. Raises `ToolError`.
ToolFunction: TypeAlias = Callable[[Mapping[str, object]], Awaitable[str]]


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class CallDescription:
    """What a call does, to follow 'Shall I' and 'Soll ich'. `proposals.spoken` makes its values speakable."""

    english: str
    german: str


@dataclass(frozen=True, slots=True)
class RoomTool:
    """One tool. `parameters`: the JSON schema of its arguments.

    `side_effects`: the tool changes something outside. Then it runs only on an order (`orders`). `words` name it there:
    its verbs ('post') and what it acts on ('link'). `describe` says what a call does, for the question before it, and
    raises `ToolError` for arguments that the tool refuses. `available`: whether it can be called now. `timeout_s`: time
    limit of a call. `max_chars`: how much of its output the model gets.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    call: ToolFunction
    permission: Permission = Permission.ANYONE
    side_effects: bool = False
    words: tuple[str, ...] = ()
    describe: Callable[[Mapping[str, object]], CallDescription] | None = None
    timeout_s: float = TIMEOUT_S
    max_chars: int = MAX_CHARS
    available: Callable[[], bool] = _always
