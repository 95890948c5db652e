"""Runs one tool call within its limits. Each failure becomes a sentence for the model."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING

import structlog

from bot.brain.tools.tool import ToolError
from compaction.untrusted_text import mark_as_data
from voice.cancellation import is_being_cancelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.brain.tools.tool import RoomTool

log = structlog.get_logger()


class ToolOutcome(StrEnum):
    """How a call ended, for the log and for people."""

    UNKNOWN = "unknown"
    REFUSED = "refused"
    ASKED = "asked"
    ANSWERED = "answered"
    FAILED = "failed"
    TIMEOUT = "timeout"
    BROKEN = "broken"


# Ends after which nobody has what the tool was called for.
FAILURES = frozenset({ToolOutcome.FAILED, ToolOutcome.TIMEOUT, ToolOutcome.BROKEN})


async def run_tool(tool: RoomTool, arguments: Mapping[str, object]) -> tuple[ToolOutcome, str]:
    """Call a tool with arguments that fit its schema. Return how it ended and what the model reads: bounded, and what
    comes from outside marked as data. *Cancellation* cancels the call.
    """
    try:
        async with asyncio.timeout(tool.timeout_s):
            found = await tool.call(arguments)
    except TimeoutError:
        return ToolOutcome.TIMEOUT, f"{tool.name} took longer than {tool.timeout_s:g} s and was given up."
    except ToolError as error:
        return ToolOutcome.FAILED, error_text(tool, error)
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
            raise
        # A broken tool costs one result. The message of the exception is not logged: it may quote people.
        log.warning("tool_crashed", tool=tool.name, error_class=type(error).__name__, exc_info=error)
        return ToolOutcome.BROKEN, f"{tool.name} broke. Go on without it."
    return ToolOutcome.ANSWERED, mark_as_data(tool.name, found, max_chars=tool.max_chars)


def error_text(tool: RoomTool, error: ToolError) -> str:
    """Return what the model reads of an error. Its message may come from outside, for example from an MCP server."""
    return mark_as_data(tool.name, str(error), max_chars=tool.max_chars)
