"""Tools as values: name and description for the model, function, who may use it; and how one call of one runs.

Whatever reaches a model as text may hold instructions: speech, files, screens, the answers of servers. So a tool runs
with the rights of the person who asked, whatever a prompt says, and one that does more than an answer does waits for
that person's press (`frozen_calls`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import structlog

from compaction.untrusted_text import mark_as_data
from voice.cancellation import is_being_cancelled

if TYPE_CHECKING:
    from bot.channel.port import TypedMessage

log = structlog.get_logger()

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


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who asked the question. `present`: in the voice channel now, and not a bot. `roles`: ids of theirs.
    `typed`: the message in which they asked, if they did not say it.
    """

    user_id: int | None = None
    name: str = ""
    present: bool = False
    roles: frozenset[int] = frozenset()
    typed: TypedMessage | None = None


# The asker of an unasked reply, in which the bot speaks on its own.
NOBODY = Asker()


def anybody(_: Asker) -> bool:
    """Permit a tool for everybody, and also when the bot speaks unasked."""
    return True


def whoever_is_present(asker: Asker) -> bool:
    """Permit a tool for people who are in the voice channel now."""
    return asker.present


# How a call ended, for the log and for people.
ToolOutcome: TypeAlias = Literal["unknown", "refused", "asked", "answered", "failed", "timeout", "broken"]
# Ends after which nobody has what the tool was called for.
FAILURES: Final = frozenset({"failed", "timeout", "broken"})


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
    available: Callable[[], bool] = lambda: True

    def refusal(self, asker: Asker) -> str | None:
        """Return why it may not run for `asker`, as a sentence for the model, or None if it may."""
        if self.permits(asker) and (asker.present or not self.asks):
            return None
        return f"{self.name} is not allowed for who asked. Say so, and go on without it."

    def is_same_as(self, other: RoomTool) -> bool:
        """Return whether both do the same as far as their descriptions tell, so that a press for one counts."""
        mine = (self.name, self.server, self.title, self.description, self.parameters)
        return mine == (other.name, other.server, other.title, other.description, other.parameters)

    async def run(self, arguments: Mapping[str, object]) -> tuple[ToolOutcome, str]:
        """Call it with arguments that fit its schema. Return how it ended and what the model reads: bounded, and what
        comes from outside marked as data. Each failure becomes a sentence. *Cancellation* cancels the call.
        """
        try:
            async with asyncio.timeout(self.timeout_s):
                found = await self.call(arguments)
        except TimeoutError:
            return "timeout", f"{self.name} took longer than {self.timeout_s:g} s and was given up."
        except ToolError as error:
            return "failed", self.as_data(str(error))
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
                raise
            # A broken tool costs one result. The message of the exception is not logged: it may quote people.
            log.warning("tool_crashed", tool=self.name, error_class=type(error).__name__, exc_info=error)
            return "broken", f"{self.name} broke. Go on without it."
        return "answered", self.as_data(found)

    def as_data(self, text: str) -> str:
        """Return a text that may come from outside, for example from an MCP server, as the model reads it."""
        return mark_as_data(self.name, text, max_chars=self.max_chars)
