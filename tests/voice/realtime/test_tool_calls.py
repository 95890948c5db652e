"""What a speech-to-speech model is told about its calls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from voice.realtime import tool_calls
from voice.realtime.port import RealtimeToolCall
from voice.realtime.tool_calls import tool_output

if TYPE_CHECKING:
    import pytest

CALL = RealtimeToolCall("c1", "search", '{"about": "a secret"}')


async def test_the_model_gets_the_output_or_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that fails or takes too long costs its output, and the log has neither its arguments nor its error."""

    async def works(call: RealtimeToolCall) -> str:
        return f"Found by {call.name}."

    async def fails(call: RealtimeToolCall) -> str:
        raise ValueError(call.arguments)

    async def hangs(call: RealtimeToolCall) -> str:
        await asyncio.Event().wait()
        raise AssertionError(call)

    assert await tool_output(CALL, works) == "Found by search."
    assert await tool_output(CALL, None) == "There is no such tool."
    with capture_logs() as logs:
        assert await tool_output(CALL, fails) == "The tool failed."
    assert [(line["event"], line["error_class"]) for line in logs] == [("realtime_tool_failed", "ValueError")]
    assert "secret" not in repr(logs)
    monkeypatch.setattr(tool_calls, "TOOL_TIMEOUT_S", 0.0)
    assert "too long" in await tool_output(CALL, hangs)
