"""One span for each turn of speech, with the moments from its first packet to the last sound of its answer."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from structlog.testing import capture_logs

from bot import events
from bot.errors import SetupError
from bot.events import ReplyOutcome
from bot.monitoring.traces import OPEN_TURNS, open_traces, wants_traces
from tests.bot.monitoring.happened import ADA, HAPPENED, SPOKEN, WORDS
from tests.patience import PATIENCE_S

ANSWERED = ["speech_ended", "end_certain", "recognition_begun", "text_ready", "turn_complete", "turn_stored", "decided"]
TURN_RECORDED = next(event for event in HAPPENED if isinstance(event, events.TurnRecorded))
SPOKEN_TO = [*ANSWERED, "reply_begun", "first_token", "first_sound", "reply_ended"]


def recorded(started_at: float) -> events.TurnRecorded:
    """Return that the turn of `SPOKEN` was recorded. `started_at`: UTC epoch seconds."""
    turn = replace(TURN_RECORDED.turn, started_at=started_at, ended_at=started_at + 2.0)
    return replace(TURN_RECORDED, turn=turn)


def decided(seq: int, *, answers: bool = True) -> events.TurnDecided:
    """Return the decision about a turn."""
    return events.TurnDecided(seq, SPOKEN, answers, "named", 12.9, 12.95, 12.96)


async def spans_of(happened: Sequence[events.Event]) -> Sequence[ReadableSpan]:
    """Return the spans of a room in which that happened."""
    exporter = InMemorySpanExporter()
    async with open_traces(exporter=exporter) as traces:
        assert traces is not None
        with traces.room() as observe:
            for event in happened:
                observe(event)
    return exporter.get_finished_spans()


async def test_an_answered_turn_is_one_span_from_packet_to_last_sound() -> None:
    """The span begins with the speech and ends with the last sound. Its events are in order, and it has the figures.

    Its times are those of the room's machine, whose monotonic clock began at another time than this one's.
    """
    started_at = 1_795_000_000.0
    (span,) = await spans_of([recorded(started_at), *HAPPENED[HAPPENED.index(TURN_RECORDED) + 1 :]])
    shift_s = started_at - SPOKEN.started_at
    assert span.name == "turn"
    assert [event.name for event in span.events] == SPOKEN_TO
    times = [span.start_time, *(event.timestamp for event in span.events), span.end_time]
    seconds = [round(time / 1e9 - shift_s, 3) for time in times if time is not None]
    assert seconds == pytest.approx(
        [10.0, 12.0, 12.4, 12.5, 12.8, 12.9, 12.95, 12.96, 13.0, 13.6, 14.0, 17.0, 17.0], abs=0.01
    )
    assert dict(span.attributes or {}) == {
        "roomtone.answers": True,
        "roomtone.reason": "named",
        "roomtone.early_recognition": False,
        "roomtone.speech_s": 2.0,
        "roomtone.recogniser_compute_s": 0.1,
        "roomtone.outcome": "spoken",
        "roomtone.end_to_sound_s": 2.0,
        "roomtone.synthesis_s": 0.2,
    }
    assert span.resource.attributes["service.name"] == "roomtone"
    for secret in (WORDS, str(ADA), "u1"):
        assert secret not in span.to_json()


async def test_turns_without_an_answer_are_spans_too() -> None:
    """A turn that is not answered ends with the decision. Of those whose answer never ended, the oldest ends when too
    many are open, and the others with the room. A remark that nobody asked for is no span.
    """
    unasked = events.ReplyFinished(99, ReplyOutcome.SPOKEN, None, 13.0, 13.6, 0.2, 14.0, 17.0)
    spans = await spans_of(
        [TURN_RECORDED, decided(0, answers=False), unasked, *(decided(seq) for seq in range(1, OPEN_TURNS + 2))]
    )
    assert [[event.name for event in span.events] for span in spans] == [ANSWERED] * (OPEN_TURNS + 2)
    outcomes = [(span.attributes or {}).get("roomtone.outcome") for span in spans]
    assert outcomes == [None, "superseded", *["unfinished"] * OPEN_TURNS]


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_the_standard_variables_switch_traces_on(environment: dict[str, str], wanted: bool) -> None:
    """Only an address switches them on, and the SDK's own switch off."""
    assert wants_traces(environment) is wanted


async def test_without_the_extra_it_is_a_plain_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address without the libraries is refused at the start, with the remedy."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(SetupError, match="piper,telemetry"):
        async with open_traces():
            pass


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "100", "max_export_batch_size must be less"),
        ("OTEL_SPAN_EVENT_COUNT_LIMIT", "many", "OTEL_SPAN_EVENT_COUNT_LIMIT"),
    ],
)
async def test_variables_that_are_refused_are_a_plain_sentence(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, why: str
) -> None:
    """What the library refuses is a mistake of the operator, who learns which variables to look at."""
    # The library reads it at its import too.
    monkeypatch.setenv(variable, value)
    with pytest.raises(SetupError, match=rf"{why}.*OTEL_"):
        async with open_traces(exporter=InMemorySpanExporter()):
            pass


class StalledExporter(SpanExporter):
    """Sends to a collector that takes the spans and does not answer before `answers` is set."""

    def __init__(self) -> None:
        self.has_begun, self.answers = threading.Event(), threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.has_begun.set()
        self.answers.wait(PATIENCE_S)
        return SpanExportResult.FAILURE


async def test_a_collector_that_does_not_answer_keeps_the_bot_from_ending_no_longer_than_it_may() -> None:
    """The library itself waits for as long as a request may take, once for every 512 spans."""
    exporter = StalledExporter()
    try:
        with capture_logs() as logs:
            async with open_traces(exporter=exporter, flush_s=0.0) as traces:
                assert traces is not None
                with traces.room() as observe:
                    observe(TURN_RECORDED)
                    observe(decided(0, answers=False))
        assert await asyncio.to_thread(exporter.has_begun.wait, PATIENCE_S)
        assert not exporter.answers.is_set()
    finally:
        exporter.answers.set()
    assert [line["event"] for line in logs] == ["traces_opened", "traces_not_sent"]
