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
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from bot import events
from bot.errors import SetupError
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

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


@dataclass(frozen=True, slots=True)
class _OpenTurn:
    """A turn that is being traced. `shift_s`: what makes UTC epoch seconds of monotonic ones. The wall clock may be set
    meanwhile, so every time of a span has the same distance to it.
    """

    span: Span
    shift_s: float
    decided_at: float

    def add(self, moments: Iterable[tuple[str, float | None]]) -> None:
        for name, at in moments:
            if at is not None:
                self.span.add_event(name, timestamp=round((at + self.shift_s) * 1e9))

    def end(self, at: float, **attributes: str | float) -> None:
        self.span.set_attributes({f"roomtone.{name}": value for name, value in attributes.items()})
        self.span.end(end_time=round((at + self.shift_s) * 1e9))


class Traces:
    """The traces of one process. `tracer`: makes the spans."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def room(self) -> Iterator[events.Observer]:
        """Trace a room while the block runs. Yields what takes the room's events. What is open at the end is sent."""
        turns = _RoomTurns(self._tracer)
        try:
            yield turns.observe
        finally:
            turns.end_oldest("unfinished", left=0)


class _RoomTurns:
    """The open turns of one room, by number."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._open: dict[int, _OpenTurn] = {}
        # From the room's monotonic clock to UTC.
        self._shift_s: float | None = None

    def observe(self, event: events.Event) -> None:
        match event:
            case events.TurnRecorded(turn=turn, utterances=utterances) if utterances:
                self._shift_s = turn.started_at - min(spoken.started_at for spoken in utterances)
            case events.TurnDecided() if self._shift_s is not None:
                self._add(event, self._shift_s)
            case events.ReplyFinished() if event.answer_to in self._open:
                self._finish(event, self._open.pop(event.answer_to))
            case _:
                pass

    def end_oldest(self, outcome: str, *, left: int) -> None:
        """End all turns but the newest `left` with what is known of them."""
        for seq in [*self._open][: max(0, len(self._open) - left)]:
            turn = self._open.pop(seq)
            turn.end(turn.decided_at, outcome=outcome)

    def _add(self, event: events.TurnDecided, shift_s: float) -> None:
        from opentelemetry.trace import SpanKind

        spoken, utterance = event.spoken, event.spoken.utterance
        attributes: dict[str, str | bool | float] = {
            "roomtone.answers": event.answers,
            "roomtone.reason": event.reason,
            "roomtone.early_recognition": spoken.early,
            "roomtone.speech_s": round(utterance.ended_at - utterance.started_at, 3),
            "roomtone.recogniser_compute_s": round(spoken.recognition.compute_s, 3),
        }
        started_at = round((utterance.started_at + shift_s) * 1e9)
        span = self._tracer.start_span("turn", kind=SpanKind.CONSUMER, start_time=started_at, attributes=attributes)
        turn = _OpenTurn(span, shift_s, event.at)
        turn.add(
            (
                ("speech_ended", utterance.ended_at),
                ("end_certain", utterance.closed_at),
                ("recognition_begun", spoken.begun_at),
                ("text_ready", spoken.text_at),
                ("turn_complete", event.released_at),
                ("turn_stored", event.stored_at),
                ("decided", event.at),
            )
        )
        if not event.answers:
            turn.end(event.at)
            return
        self._open[event.seq] = turn
        self.end_oldest("superseded", left=OPEN_TURNS)

    def _finish(self, reply: events.ReplyFinished, turn: _OpenTurn) -> None:
        turn.add(
            (
                ("reply_begun", reply.begun_at),
                ("first_token", reply.first_token_at),
                ("first_sound", reply.first_audio_at),
                ("reply_ended", reply.ended_at),
            )
        )
        figures: dict[str, float] = {}
        if reply.first_audio_at is not None and reply.asked_at is not None:
            figures["end_to_sound_s"] = round(reply.first_audio_at - reply.asked_at, 3)
        if reply.synthesis_s is not None:
            figures["synthesis_s"] = round(reply.synthesis_s, 3)
        turn.end(reply.ended_at, outcome=reply.outcome.value, **figures)


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
