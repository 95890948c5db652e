"""Sessions of speech-to-speech as the settings want them: each response is a call of a model, as any other."""

from __future__ import annotations

import asyncio

import pytest
from structlog.typing import EventDict

from bot.realtime.port import session_factory
from tests.fakes.billed import Purse
from tests.fakes.clock import FakeClock
from tests.patience import settle
from tests.rehearsal.servers.realtime_client import FakeModel, report_usage, served
from voice.realtime.port import Briefing, RealtimeToolCall
from voice.realtime.settings import RealtimeSettings


async def _no_tool(call: RealtimeToolCall) -> str:
    raise AssertionError(call)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 40, "output_tokens": 7}, (40, 7)),
        # Counts that no call has would break the metrics.
        ({"input_tokens": -40, "output_tokens": 10**400}, (None, None)),
    ],
)
async def test_each_response_is_logged_and_counted(
    usage: dict[str, object],
    tokens: tuple[int | None, int | None],
    monkeypatch: pytest.MonkeyPatch,
    logs: list[EventDict],
) -> None:
    """With the fields that every `model_call_finished` has, and in the same metrics."""
    report_usage(monkeypatch, usage)
    meter = Purse()
    purse = Purse()
    async with served(FakeModel()) as server:
        settings = RealtimeSettings.model_validate({"model": "gpt-realtime", "base_url": server.base_url})
        new_session = session_factory(settings, api_key="k", clock=FakeClock(), meter=meter)
        session, run = new_session(lambda: Briefing("Be kind."), lambda _: None, _no_tool, purse)
        living = asyncio.create_task(run(), name="session-under-test")
        await settle(lambda: bool(server.of("session.update")))
        assert [piece async for piece in session.reply()]
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)
    (line,) = [each for each in logs if each["event"] == "model_call_finished"]
    assert (line["purpose"], line["model"], line["outcome"]) == ("speech-to-speech", settings.model, "answered")
    assert (line["prompt_tokens"], line["completion_tokens"]) == tokens
    assert line["duration_ms"] == 0.0
    (call,) = meter.paid
    assert purse.paid == meter.paid
    assert (call.model, call.purpose, call.outcome) == (settings.model, "speech-to-speech", "answered")
    assert (call.prompt_tokens, call.completion_tokens) == tuple(count or 0 for count in tokens)
