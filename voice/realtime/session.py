"""One room's speech-to-speech session over OpenAI's client: speech goes to the model, and its replies come back.

The room and `voice.realtime.protocol` decide what is sent. The session opens each connection, renews it in time, and
tries again after a loss. A new connection starts with a current briefing; pending inputs and replies continue on it.
"""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

import structlog

from voice.audio import LISTEN_RATE_HZ, Pcm
from voice.endpoint import open_client
from voice.endpoint_settings import address
from voice.errors import RealtimeError
from voice.queue_figures import QueueFigures
from voice.realtime.active_reply import milliseconds
from voice.realtime.availability import Availability, RealtimeWork
from voice.realtime.connection import OUTGOING_EVENTS, ConnectionEnd, ErrorMessages, RealtimeConnection, dial
from voice.realtime.effects import (
    ConfigurationRefused,
    Effect,
    InputTranscribed,
    ResponseEnded,
    ResponseStatus,
    SendEvent,
    ServerError,
    SessionExpired,
    SessionReady,
    ToolRefused,
)
from voice.realtime.port import (
    REALTIME_LIMITS,
    REALTIME_RATE_HZ,
    Briefing,
    ConversationItem,
    InputTranscript,
    RealtimeFailed,
    RealtimeLimits,
    RealtimeNews,
    RealtimeRenewed,
    RealtimeRestored,
    RealtimeTool,
    RealtimeToolCall,
    ReplyPiece,
    ReplyResumed,
    ToolRunner,
)
from voice.realtime.protocol import RealtimeProtocol
from voice.realtime.reply_queue import MOST_SOUND_S, FinishedResponse, OpenResponses, ReplyQueue
from voice.realtime.session_tools import tool_output
from voice.realtime.wire import ClientEvent, label_ids
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence

    import openai

    from voice.clock import AsyncClock
    from voice.realtime.settings import RealtimeSettings

log = structlog.get_logger()

NOT_WRITTEN = "The speech-to-speech model did not write down in time what you said. Ask again."
NO_ANSWER = "The speech-to-speech model did not answer in time. Ask again."
# The code of a reply whose session was given up.
GIVEN_UP = "given_up"


# A connection that lasted this long counts as good, even if nobody spoke.
PROVEN_S = 60.0
# Why we end a connection that works, to open another at once.
PLANNED = frozenset({"expiring", "reconfigured"})
CONNECT_TIMEOUT_S = 10.0
# Seconds that a due renewal waits until the session is idle, and between two looks whether it is.
RENEWAL_PATIENCE_S = 45.0
IDLE_LOOK_S = 0.25


class RealtimeSession:
    """`voice.realtime.port.Realtime` over a websocket. Run `run` as a task.

    `brief` returns the briefing for each new connection. `on_event` gets renewals, failures and recoveries, and
    `on_response` each response of the model when it is over; neither may block. *Ownership*: `run` is a task of the
    room; call the other methods on the same event loop. *Cancellation*: cancelling `run` closes the connection;
    cancelling `send_audio` or `reply` only stops waiting.
    """

    def __init__(
        self,
        settings: RealtimeSettings,
        *,
        api_key: str,
        brief: Callable[[], Briefing],
        clock: AsyncClock,
        on_event: Callable[[RealtimeNews], None],
        on_response: Callable[[FinishedResponse], None],
        run_tool: ToolRunner,
        limits: RealtimeLimits = REALTIME_LIMITS,
    ) -> None:
        self._settings = settings
        self._api_key = api_key
        self._limits = limits
        self._brief = brief
        self._clock = clock
        self._on_event = on_event
        self._on_response = on_response
        self._run_tool = run_tool
        self._errors = ErrorMessages(settings.model, address(settings.base_url))
        self._protocol = RealtimeProtocol(settings.voice)
        self._responses = OpenResponses()
        # By the number of their input.
        self._transcripts: dict[int, asyncio.Future[InputTranscribed]] = {}
        self._pieces: ReplyQueue | None = None
        # How many replies were cut off because they were too long.
        self._cut_replies = 0
        self._availability = Availability(
            failures_in_a_row=limits.failures_before_fallback, retry_delay_s=limits.retry_after_s
        )
        self._connection: RealtimeConnection | None = None
        # How often too much waited to be sent.
        self._overflows = 0
        # Set while a connection is open whose configuration the server has accepted.
        self.ready = asyncio.Event()

    # -- called by the room ----------------------------------------------------------------------------------

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        to_speak_s = 0 if self._pieces is None else math.ceil(self._pieces.waiting_s)
        reply = QueueFigures("realtime_reply", to_speak_s, MOST_SOUND_S, {"full": self._cut_replies})
        to_send = 0 if self._connection is None else self._connection.waiting
        return QueueFigures("realtime_events", to_send, OUTGOING_EVENTS, {"full": self._overflows}), reply

    @property
    def usable(self) -> bool:
        return self._availability.given_up is None

    def send_audio(self, pcm: Pcm, *, speakers: str) -> Awaitable[InputTranscript]:
        self._refuse_when_failed()
        input_id, events = self._protocol.send_audio(resample(pcm, LISTEN_RATE_HZ, REALTIME_RATE_HZ), speakers=speakers)
        self._transcripts[input_id] = asyncio.get_running_loop().create_future()
        self._send(events)
        return self._transcript(input_id)

    async def _transcript(self, input_id: int) -> InputTranscript:
        try:
            async with asyncio.timeout(self._limits.hear_timeout_s):
                found = await self._transcripts[input_id]
        except TimeoutError as exc:
            item_id = self._protocol.drop_input(input_id)
            # Without a connection, its loss is what counts.
            if self._connection is not None:
                log.warning("realtime_not_written", within_s=self._limits.hear_timeout_s)
                self._failed(RealtimeWork.TRANSCRIPTION, RealtimeError(NOT_WRITTEN))
            if item_id is None:
                raise RealtimeError(NOT_WRITTEN) from exc
            found = InputTranscribed(input_id, item_id, None)
        finally:
            del self._transcripts[input_id]
            self._protocol.drop_input(input_id)
        return InputTranscript(found.text, label_ids(input_id, found.item_id) if found.item_id else ())

    async def reply(self) -> AsyncGenerator[ReplyPiece | ReplyResumed, None]:
        self._refuse_when_failed()
        pieces = self._pieces = ReplyQueue(self._limits.reply_timeout_s)
        self._send(self._protocol.request_reply())
        while True:
            try:
                piece = await pieces.take()
            except TimeoutError as exc:
                error = RealtimeError(NO_ANSWER)
                self._failed(RealtimeWork.REPLY, error)
                raise error from exc
            if not isinstance(piece, ResponseEnded):
                yield piece
                continue
            if piece.how is ResponseStatus.FAILED:
                failure = self._availability.given_up or self._errors.for_code(piece.code)
                if piece.code != GIVEN_UP:
                    self._failed(RealtimeWork.REPLY, failure)
                raise failure
            self._availability.record_success(RealtimeWork.REPLY)
            return

    def interrupt(self, heard_ms: int) -> bool:
        self._pieces = None
        truncates = self._protocol.can_truncate
        self._send(self._protocol.interrupt(heard_ms))
        return truncates

    def add_item(self, item: ConversationItem) -> None:
        self._send(self._protocol.add_item(item))

    def delete_items(self, item_ids: Iterable[str]) -> None:
        self._send(self._protocol.delete_items(item_ids))

    def delete_tool_calls(self) -> None:
        self._send(self._protocol.delete_tool_calls())

    def set_instructions(self, instructions: str) -> None:
        self._send(self._protocol.set_instructions(instructions))

    def set_tools(self, tools: Iterable[RealtimeTool]) -> None:
        self._send(self._protocol.set_tools(tools))

    # -- connections -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the session connected. After giving up, try again later. Return when a retry cannot help."""
        client = open_client(self._settings.base_url, self._api_key, timeout_s=CONNECT_TIMEOUT_S)
        at_once = False
        try:
            while not self._availability.ended:
                if not (self.usable or at_once):
                    await self._clock.sleep(self._availability.retry_delay_s)
                at_once = await self._live_once(client)
        finally:
            self._end_responses(ResponseStatus.CANCELLED)
            await client.close()

    async def _live_once(self, client: openai.AsyncOpenAI) -> bool:
        """Run one connection to its end and handle the reason. Returns whether we ended it to open another at once."""
        given_up, opened_at = self._availability.given_up, self._clock.monotonic()
        # A connection after the session was given up is a trial, for as long as it lasts.
        self._availability.on_trial = given_up is not None
        end = await self._connected(client)
        self._availability.on_trial = False
        self._end_responses(ResponseStatus.FAILED)
        self._take(self._protocol.on_disconnected())
        if end.reason not in PLANNED:
            error = end.error or self._errors.ended()
            if given_up is not None and self._availability.given_up is given_up:
                log.info("realtime_still_gone", problem=error)
                if not error.retryable:
                    self._availability.given_up = error
                    self.on_given_up(error)
            else:
                log.warning("realtime_connection_ended", reason=end.reason, problem=end.error)
                if error.retryable and self._clock.monotonic() - opened_at >= PROVEN_S:
                    self._availability.record_success(RealtimeWork.CONNECTION)
                elif (
                    not self._failed(RealtimeWork.CONNECTION, error)
                    and self.usable
                    # After a first failure there is no pause.
                    and (backoff_s := self._availability.backoff_s)
                ):
                    await self._clock.sleep(backoff_s)
        if self.usable:
            self._on_event(RealtimeRenewed(end.reason))
        return end.reason in PLANNED

    async def _connected(self, client: openai.AsyncOpenAI) -> ConnectionEnd:
        """Run one connection to its end, and return why it ended."""
        try:
            socket = await dial(client, model=self._settings.model, within_s=CONNECT_TIMEOUT_S)
        except Exception as error:  # noqa: BLE001 - every kind is translated
            return ConnectionEnd("lost", self._errors.translate(error))
        connection = self._connection = RealtimeConnection(socket, self._errors)
        log.info("realtime_session_opened", model=self._settings.model)
        beside = [
            ("realtime-read", partial(self._read, connection)),
            ("realtime-renewal", partial(self._renew, connection)),
        ]
        if self._availability.on_trial:
            beside.append(("realtime-trial", partial(self._end_unless_ready, connection)))
        try:
            self._send(self._protocol.on_connected(self._brief()))
            if (resumed := self._protocol.resumed) is not None:
                self._hand_on(resumed)
            return await connection.hold(beside)
        finally:
            self._connection = None
            self.ready.clear()
            await connection.close()

    async def _read(self, connection: RealtimeConnection) -> None:
        while True:
            event = await connection.receive()
            try:
                self._on_server_event(event)
            except Exception as error:
                # It looks like an event that is not of the protocol, and may be a defect of ours.
                log.warning("realtime_event_failed", error_class=type(error).__name__, exc_info=error)
                raise

    async def _renew(self, connection: RealtimeConnection) -> None:
        """End the connection before the server does: when the session is idle, or after a grace period."""
        await self._clock.sleep(self._limits.session_s)
        deadline = self._clock.monotonic() + RENEWAL_PATIENCE_S
        while not self._protocol.idle and self._clock.monotonic() < deadline:
            await self._clock.sleep(IDLE_LOOK_S)
        connection.end("expiring")

    async def _end_unless_ready(self, connection: RealtimeConnection) -> None:
        await self._clock.sleep(CONNECT_TIMEOUT_S)
        if not self.ready.is_set():
            connection.end("lost", self._errors.translate(TimeoutError()))

    def _failed(self, work: RealtimeWork, error: RealtimeError) -> bool:
        """Count a failure. Returns whether the session is given up for it."""
        is_last = self._availability.record_failure(work, error)
        if is_last:
            self.on_given_up(error)
        return is_last

    def on_given_up(self, error: RealtimeError) -> None:
        """End all that waits for the model, and tell the room."""
        log.error("realtime_given_up", problem=error, failures=self._availability.failures, lasting=not error.retryable)
        for waiting in self._transcripts.values():
            if not waiting.done():
                waiting.set_exception(RealtimeError("{why}", why=error, retryable=False))
        self._hand_on(ResponseEnded(ResponseStatus.FAILED, GIVEN_UP))
        self._protocol.reset()
        self._end("lost", error)
        self._on_event(RealtimeFailed(error))

    def _send(self, events: Sequence[ClientEvent]) -> None:
        """Send events over the open connection, if any. If too many wait, it is stuck and ends."""
        if self._connection is not None and not self._connection.send(events):
            self._overflows += 1
            self._end("lost", self._errors.too_slow())

    def _end(self, reason: str, error: RealtimeError | None = None) -> None:
        """End the open connection, if any. `reason`: see `ConnectionEnd`."""
        if self._connection is not None:
            self._connection.end(reason, error)

    # -- effects ---------------------------------------------------------------------------------------------

    def _on_server_event(self, event: Mapping[str, Any]) -> None:
        if (finished := self._responses.receive(event, self._clock.monotonic())) is not None:
            self._on_response(finished)
        self._take(self._protocol.receive(event))

    def _take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendEvent(event):
                    self._send([event])
                case InputTranscribed():
                    self._availability.record_success(RealtimeWork.TRANSCRIPTION)
                    waiting = self._transcripts.get(effect.input_id)
                    if waiting is not None and not waiting.done():
                        waiting.set_result(effect)
                case ReplyPiece() | ResponseEnded():
                    self._hand_on(effect)
                case RealtimeToolCall():
                    assert self._connection is not None, "the call has come over it"
                    if self._pieces is not None:
                        self._pieces.wait_anew()
                    self._connection.start(self._call(effect), f"realtime-tool-{effect.name}")
                case SessionReady():
                    self.ready.set()
                    if self._availability.record_recovery():
                        log.info("realtime_restored")
                        self._on_event(RealtimeRestored())
                case ConfigurationRefused():
                    self._end("lost", self._errors.for_configuration(effect))
                case ToolRefused(tool, begins_anew):
                    log.warning("tool_schema_refused", model=self._settings.model, tool=tool)
                    if begins_anew:
                        self._end("reconfigured")
                case SessionExpired():
                    self._end("expired")
                case ServerError(code):
                    log.warning("realtime_error", code=code)
                    error = self._errors.for_code(code)
                    if not error.retryable:
                        self._end("lost", error)
                case _:
                    assert_never(effect)

    def _hand_on(self, piece: ReplyPiece | ReplyResumed | ResponseEnded) -> None:
        if self._pieces is None or self._pieces.put(piece):
            return
        # What waits is played to its end. The model is told where that is, and makes no more.
        assert isinstance(piece, ReplyPiece), "only sound and words may have no room"
        self._cut_replies += 1
        log.warning("realtime_reply_cut_off", waiting_s=MOST_SOUND_S)
        lost_ms = 0 if piece.pcm is None else milliseconds(len(piece.pcm))
        self._send(self._protocol.end_reply(lost_ms=lost_ms))

    async def _call(self, call: RealtimeToolCall) -> None:
        output = await tool_output(call, self._run_tool)
        if events := self._protocol.tool_output(call.call_id, output):
            if self._pieces is not None:
                self._pieces.wait_anew()
            self._send(events)

    def _end_responses(self, status: ResponseStatus) -> None:
        """End the responses that went on when their connection ended."""
        for finished in self._responses.end_all(status, self._clock.monotonic()):
            self._on_response(finished)

    def _refuse_when_failed(self) -> None:
        if (given_up := self._availability.given_up) is not None:
            raise RealtimeError("{why}", why=given_up, retryable=False)
