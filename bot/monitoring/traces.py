"""Traces for OpenTelemetry: one span for each turn of speech, from its first packet to the last sound of its answer.

The span's events are the moments between: the end was certain, the text was ready, the turn was stored, it was decided,
the model gave its first token, the answer began to sound. It has figures and words of the code, and no word or id of
anybody.

The libraries are the extra `telemetry`. Without OTEL_EXPORTER_OTLP_ENDPOINT they are not imported.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from bot import events
from bot.errors import SetupError
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

log = structlog.get_logger()

# The standard variables; the second is for traces alone.
ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
DISABLED_VARIABLE: Final = "OTEL_SDK_DISABLED"
SERVICE: Final = "roomtone"
# Turns whose answer has not ended: one is spoken, one waits. Older ones were superseded.
OPEN_TURNS: Final = 8
# How long the last spans may take to be sent when the bot ends. The library itself waits for a collector that does not
# answer, as long as OTEL_EXPORTER_OTLP_TIMEOUT says (10 s), and so again for every 512 spans.
FLUSH_S: Final = 3.0
NOT_INSTALLED: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the libraries for traces are not installed. In the checkout, run "
    "`make setup`, or `uv tool install '.[piper,telemetry]'`; or remove the variable."
)
NOT_UNDERSTOOD: Final = Text("Traces cannot be sent: {why}. Correct the variables OTEL_…, or remove them.")


def wants_traces(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the standard variables say where traces go."""
    disabled = environment.get(DISABLED_VARIABLE, "").strip().casefold() == "true"
    return not disabled and any(environment.get(name, "").strip() for name in ENDPOINT_VARIABLES)


@dataclass(slots=True)
class _OpenTurn:
    """A turn that is being traced. Times are monotonic seconds. `shift_s`: what makes them UTC epoch seconds."""

    seq: int
    started_at: float
    shift_s: float
    moments: list[tuple[str, float]] = field(default_factory=list)
    attributes: dict[str, str | bool | int | float] = field(default_factory=dict)


class Traces:
    """The traces of one process. `tracer`: makes the spans."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def room(self) -> Iterator[events.Observer]:
        """Trace a room while the block runs. Yields what takes the room's events. What is open at the end is sent."""
        turns = _RoomTurns(self._send)
        try:
            yield turns.observe
        finally:
            turns.close()

    def _send(self, turn: _OpenTurn, ended_at: float) -> None:
        from opentelemetry.trace import SpanKind

        def nanoseconds(at: float) -> int:
            # The wall clock may have been set meanwhile: every time of a span has the same distance to it.
            return round((at + turn.shift_s) * 1e9)

        span = self._tracer.start_span(
            "turn",
            kind=SpanKind.CONSUMER,
            start_time=nanoseconds(turn.started_at),
            attributes={f"roomtone.{name}": value for name, value in turn.attributes.items()},
        )
        for name, at in turn.moments:
            span.add_event(name, timestamp=nanoseconds(at))
        span.end(end_time=nanoseconds(max(ended_at, turn.started_at)))


class _RoomTurns:
    """The open turns of one room, by number."""

    def __init__(self, send: Callable[[_OpenTurn, float], None]) -> None:
        self._send = send
        self._open: OrderedDict[int, _OpenTurn] = OrderedDict()
        # From the room's monotonic clock to UTC.
        self._shift_s: float | None = None

    def observe(self, event: events.Event) -> None:
        match event:
            case events.TurnRecorded(turn=turn, utterances=utterances) if utterances:
                self._shift_s = turn.started_at - min(spoken.started_at for spoken in utterances)
            case events.TurnDecided() if self._shift_s is not None:
                self._add(event, self._shift_s)
            case events.ReplyFinished():
                self._finish(event)
            case _:
                pass

    def close(self) -> None:
        while self._open:
            self._send_oldest("unfinished")

    def _add(self, event: events.TurnDecided, shift_s: float) -> None:
        spoken, utterance = event.spoken, event.spoken.utterance
        turn = _OpenTurn(event.seq, utterance.started_at, shift_s)
        turn.moments = [
            ("speech_ended", utterance.ended_at),
            ("end_certain", utterance.closed_at),
            ("recognition_begun", spoken.begun_at),
            ("text_ready", spoken.text_at),
            ("turn_complete", event.released_at),
            ("turn_stored", event.stored_at),
            ("decided", event.at),
        ]
        turn.attributes = {
            "answers": event.answers,
            "reason": event.reason,
            "early_recognition": spoken.early,
            "speech_s": round(utterance.ended_at - utterance.started_at, 3),
            "recogniser_compute_s": round(spoken.recognition.compute_s, 3),
        }
        if not event.answers:
            self._send(turn, event.at)
            return
        self._open[event.seq] = turn
        if len(self._open) > OPEN_TURNS:
            self._send_oldest("superseded")

    def _finish(self, reply: events.ReplyFinished) -> None:
        turn = self._open.pop(reply.answer_to, None)
        if turn is None:
            # Nobody asked for this one.
            return
        moments = [("reply_begun", reply.begun_at), ("first_token", reply.first_token_at)]
        moments += [("first_sound", reply.first_audio_at), ("reply_ended", reply.ended_at)]
        turn.moments += [(name, at) for name, at in moments if at is not None]
        turn.attributes["outcome"] = reply.outcome.value
        if reply.first_audio_at is not None and reply.asked_at is not None:
            turn.attributes["end_to_sound_s"] = round(reply.first_audio_at - reply.asked_at, 3)
        if reply.synthesis_s is not None:
            turn.attributes["synthesis_s"] = round(reply.synthesis_s, 3)
        self._send(turn, reply.ended_at)

    def _send_oldest(self, outcome: str) -> None:
        _, turn = self._open.popitem(last=False)
        turn.attributes["outcome"] = outcome
        self._send(turn, turn.moments[-1][1])


@asynccontextmanager
async def open_traces(
    *, exporter: SpanExporter | None = None, flush_s: float = FLUSH_S
) -> AsyncIterator[Traces | None]:
    """Yield the traces, or None if nobody wants them. `exporter`: instead of the one that the variables describe.

    Raises `SetupError` if they are wanted and the libraries are not installed, or do not take the variables. At the end
    the last spans are sent, for `flush_s` at most.
    """
    if exporter is None and not wants_traces():
        yield None
        return
    # Imported here: it takes a third of a second, and few want it.
    try:
        from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        if exporter is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter()
        # Its thread sends in the background. If nobody takes the spans, the oldest are dropped.
        processor = BatchSpanProcessor(exporter)
        # The variables OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
        resource = Resource({SERVICE_NAME: SERVICE}).merge(OTELResourceDetector().detect())
        # No global provider: a library that traces by itself would put addresses and texts into its spans.
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    except ImportError as error:
        raise SetupError(NOT_INSTALLED) from error
    except ValueError as error:
        raise SetupError(NOT_UNDERSTOOD.fill(why=str(error).rstrip("."))) from error
    provider.add_span_processor(processor)
    log.info("traces_opened", service=SERVICE)
    try:
        yield Traces(provider.get_tracer(SERVICE))
    finally:
        # It sends what is left. A daemon thread, because one that waits for a collector keeps no process from ending.
        sending = threading.Thread(target=provider.shutdown, name="traces-shutdown", daemon=True)
        sending.start()
        await asyncio.to_thread(sending.join, flush_s)
        if sending.is_alive():
            log.warning("traces_not_sent", waited_s=flush_s)
