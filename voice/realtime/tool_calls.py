"""Runs a tool that a speech-to-speech model calls. Whatever fails is told to the model, and not to the room."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from voice.realtime.port import RealtimeToolCall, ToolRunner

log = structlog.get_logger()

# Shorter than the reply's timeout, so that the model can still say that it could not find out.
TOOL_TIMEOUT_S: Final = 5.0


async def tool_output(call: RealtimeToolCall, run_tool: ToolRunner | None) -> str:
    """Return what the model gets for its call: what the tool returned, or a sentence about why there is nothing."""
    if run_tool is None:
        return "There is no such tool."
    try:
        async with asyncio.timeout(TOOL_TIMEOUT_S):
            return await run_tool(call)
    except TimeoutError:
        return "The tool takes too long. Do not call it again for this question."
    except Exception as error:  # noqa: BLE001 - a tool's failure is told to the model, not to the room
        # Without the name, which comes from the model and may quote people.
        log.warning("realtime_tool_failed", error_class=type(error).__name__)
        return "The tool failed."
