"""Tools as values: name and description for the model, function, and who may use it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from bot.brain.tools.permission import whoever_is_present

if TYPE_CHECKING:
    from bot.brain.tools.permission import Asker

# The names of our own tools, which no other tool has.
BUILT_IN_NAMES: Final = frozenset(
    {"memory_search", "recall_turns", "read_attachment", "post_link", "look_at_screen", "be_quiet"}
)
# About 2,000 tokens. The token budget cuts older outputs to less anyway.
MAX_CHARS = 6_000
# Listeners give up on a reply that waits longer for a tool.
TIMEOUT_S = 8.0


class ToolError(Exception):
    """A tool failed. The message is a plain sentence for the model and holds no secret."""


# Called with arguments that fit the tool's schema; returns what the model reads. Raises `ToolError`.
ToolFunction: TypeAlias = Callable[[Mapping[str, object]], Awaitable[str]]


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class RoomTool:
    """One tool. `parameters`: the JSON schema of its arguments.

    `asks`: each call waits until the person who asked has pressed *Do it*. `permits`: returns whether the tool may run
    for somebody. `server`, `title`: the MCP server that has it, and its name there. `available`: whether it can be
    called now. `timeout_s`: time limit of a call. `max_chars`: how much of its output the model gets.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    call: ToolFunction
    asks: bool = True
    permits: Callable[[Asker], bool] = whoever_is_present
    server: str = ""
    title: str = ""
    timeout_s: float = TIMEOUT_S
    max_chars: int = MAX_CHARS
    available: Callable[[], bool] = _always

    def refusal(self, asker: Asker) -> str | None:
        """Return why it may not run for `asker`, as a sentence for the model, or None if it may."""
        if self.permits(asker) and (asker.present or not self.asks):
            return None
        return f"{self.name} is not allowed for who asked. Say so, and go on without it."

    def is_same_as(self, other: RoomTool) -> bool:
        """Return whether both do the same as far as their descriptions tell, so that a press for one counts."""
        mine = (self.name, self.server, self.title, self.description, self.parameters)
        return mine == (other.name, other.server, other.title, other.description, other.parameters)
