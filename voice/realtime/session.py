"""One room's speech-to-speech session over OpenAI's client: it connects, renews, gives up and recovers.

The room and `voice.realtime.protocol` decide what is sent. This module sends, waits and counts failures. When a
connection ends, planned or by accident, a new one starts with a current briefing. Pending inputs and replies continue
on the new connection.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Protocol, assert_never

import structlog

from voice.audio import LISTEN_RATE_HZ
from voice.endpoint import address, open_client
from voice.errors import RealtimeError
from voice.queue_figures import QueueFigures
from voice.realtime.availability import Availability
from voice.realtime.connection import OUTGOING_EVENTS, ConnectionEnd, RealtimeConnection, dial
from voice.realtime.effects import (
    AudioDelta,
    InputTranscribed,
    ResponseBilled,
    ResponseEnded,
    ResponseStatus,
    SendEvent,
    ServerError,
    SessionExpired,
    SessionReady,
    TextDelta,
    ToolCallRequested,
)
from voice.realtime.error_messages import error_for_code, translate_error
from voice.realtime.failure_budget import FailureBudget
from voice.realtime.limits import REALTIME_LIMITS
from voice.realtime.pending_inputs import PendingInputs
from voice.realtime.port import (
    REALTIME_RATE_HZ,
    InputTranscript,
    RealtimeFailed,
    RealtimeRenewed,
    RealtimeRestored,
    ReplyPiece,
)
from voice.realtime.protocol import RealtimeProtocol
from voice.realtime.reply_queue import MOST_SOUND_S, ReplyQueue
from voice.realtime.tool_calls import tool_output
from voice.realtime.wire import SessionConfiguration, label_ids
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence

    import openai

    from voice.audio import Pcm
    from voice.realtime.effects import Effect
    from voice.realtime.limits import RealtimeLimits
    from voice.realtime.port import Briefing, ConversationItem, RealtimeNews, RealtimeTool, RealtimeToolCall, ToolRunner
    from voice.realtime.settings import RealtimeSettings
    from voice.realtime.wire import ClientEvent

log = structlog.get_logger()

# A connection that lasted this long counts as good, even if nobody spoke.
PROVEN_S = 60.0
# Seconds between two checks whether the session is idle, while a renewal is due.
IDLE_LOOK_S = 0.25
# Maximum seconds for connecting.
CONNECT_TIMEOUT_S = 10.0
# Maximum seconds that a due renewal waits until the session is idle.
RENEWAL_PATIENCE_S = 45.0


NOT_WRITTEN = "The speech-to-speech model did not write down what was said in time. Check realtime.transcription_model."
NO_ANSWER = "The speech-to-speech model did not answer in time. Ask again."
# The code of a reply that ended because its session was given up.
GIVEN_UP = "given_up"


class AsyncClock(Protocol):
    """The time and sleep that the session uses."""

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""

    async def sleep(self, seconds: float) -> None:
        """Sleep for `seconds`."""


class RealtimeSession:
    """`voice.realtime.port.Realtime` over a websocket. Run `run` as a task.

    `brief` returns the briefing for each new connection. `on_event` gets renewals, failures and recoveries; it must not
    block. *Ownership*: `run` is a task of the room; call the other methods on the same event loop. *Cancellation*:
    cancelling `run` closes the connection; cancelling `send_audio` or `reply` only stops waiting.
    """

    def __init__(
        self,
        settings: RealtimeSettings,
        *,
        api_key: str,
        brief: Callable[[], Briefing],
        clock: AsyncClock,
        on_event: Callable[[RealtimeNews], None],
        run_tool: ToolRunner | None = None,
        language: str | None = None,
        limits: RealtimeLimits = REALTIME_LIMITS,
    ) -> None:
        self._settings = settings
        self._limits = limits
        self._api_key = api_key
        self._brief = brief
        self._clock = clock
        self._on_event = on_event
        self._run_tool = run_tool
        self._protocol = RealtimeProtocol(SessionConfiguration(settings.voice, settings.transcription_model, language))
        self._connection: RealtimeConnection | None = None
        self._inputs = PendingInputs()
        self._pieces: ReplyQueue | None = None
        # How often too much waited to be sent, and how many replies were cut off because they were too long.
        self._overflows = 0
        self._cut_replies = 0
        self._availability = Availability(
            FailureBudget(failures_in_a_row=limits.failures_before_fallback, retry_delay_s=settings.retry_after_s)
        )
        self.ready = asyncio.Event()

    # -- called by the room ----------------------------------------------------------------------------------

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """See `Realtime.queues`."""
        to_send = 0 if self._connection is None else self._connection.waiting
        to_speak_s = 0 if self._pieces is None else math.ceil(self._pieces.waiting_s)
        return (
            QueueFigures("realtime_events", to_send, OUTGOING_EVENTS, {"full": self._overflows}),
            QueueFigures("realtime_reply", to_speak_s, MOST_SOUND_S, {"full": self._cut_replies}),
        )

    @property
    def usable(self) -> bool:
        """See `Realtime.usable`."""
        return self._availability.given_up is None

    def send_audio(self, pcm: Pcm, *, speakers: str) -> Awaitable[InputTranscript]:
        """See `Realtime.send_audio`."""
        self._refuse_when_failed()
        input_id, events = self._protocol.send_audio(resample(pcm, LISTEN_RATE_HZ, REALTIME_RATE_HZ), speakers=speakers)
        self._inputs.add(input_id)
        self._send(events)
        return self._transcript(input_id)

    async def _transcript(self, input_id: int) -> InputTranscript:
        try:
            found = await self._inputs.wait(input_id, within_s=self._limits.hear_timeout_s)
        except TimeoutError as exc:
            item_id = self._protocol.drop_input(input_id)
            # Without a connection, its loss is what counts.
            if self._connection is not None:
                self._not_written()
            if item_id is None:
                raise RealtimeError(NOT_WRITTEN) from exc
            found = InputTranscribed(input_id, item_id, None)
        finally:
            self._protocol.drop_input(input_id)
        return InputTranscript(found.text, label_ids(input_id, found.item_id) if found.item_id else ())

    async def reply(self) -> AsyncGenerator[ReplyPiece, None]:
        """See `Realtime.reply`."""
        self._refuse_when_failed()
        pieces = self._pieces = ReplyQueue()
        self._send(self._protocol.request_reply())
        while True:
            try:
                async with asyncio.timeout(self._limits.reply_timeout_s):
                    piece = await pieces.take()
            except TimeoutError as exc:
                error = RealtimeError(NO_ANSWER)
                self._answer_failed(error)
                raise error from exc
            if isinstance(piece, ReplyPiece):
                yield piece
                continue
            if piece.how is ResponseStatus.FAILED:
                failure = self._availability.given_up or error_for_code(
                    piece.code, model=self._settings.model, where=self._where
                )
                if piece.code != GIVEN_UP:
                    self._answer_failed(failure)
                raise failure
            self._availability.record_reply()
            return

    def interrupt(self, heard_ms: int) -> None:
        """See `Realtime.interrupt`."""
        self._pieces = None
        self._send(self._protocol.interrupt(heard_ms))

    def add_item(self, item: ConversationItem) -> None:
        """See `Realtime.add_item`."""
        self._send(self._protocol.add_item(item))

    def delete_items(self, item_ids: Iterable[str]) -> None:
        """See `Realtime.delete_items`."""
        self._send(self._protocol.delete_items(item_ids))

    def set_instructions(self, instructions: str) -> None:
        """See `Realtime.set_instructions`."""
        self._send(self._protocol.set_instructions(instructions))

    def set_tools(self, tools: Iterable[RealtimeTool]) -> None:
        """See `Realtime.set_tools`."""
        self._send(self._protocol.set_tools(tools))

    # -- connections -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep a session open. After giving up, try again later. Return when a retry cannot help."""
        client = open_client(self._settings.base_url, self._api_key, timeout_s=CONNECT_TIMEOUT_S)
        try:
            while not self._availability.ended:
                if self._availability.given_up is not None:
                    await self._clock.sleep(self._availability.retry_delay_s)
                await self._live_once(client)
        finally:
            self.ready.clear()
            await client.close()

    async def _live_once(self, client: openai.AsyncOpenAI) -> None:
        """Run one connection to its end and handle the reason."""
        given_up, opened_at = self._availability.given_up, self._clock.monotonic()
        self._availability.begin_connection()
        end = await self._connected(client)
        self._availability.end_connection()
        self._take(self._protocol.on_disconnected())
        if end.reason != "expiring":
            error = end.error or RealtimeError("{where} ended the session.", where=self._where)
            if given_up is not None and self._availability.given_up is given_up:
                self._still_gone(error)
            else:
                log.warning("realtime_connection_ended", reason=end.reason, problem=end.error)
                held = error.retryable and self._clock.monotonic() - opened_at >= PROVEN_S
                await self._connection_failed(error, held=held)
        if self._availability.given_up is None:
            self._on_event(RealtimeRenewed(end.reason))

    async def _connected(self, client: openai.AsyncOpenAI) -> ConnectionEnd:
        """Run one connection to its end, and return why it ended."""
        settings = self._settings
        try:
            socket = await dial(client, model=settings.model, within_s=CONNECT_TIMEOUT_S)
        except Exception as error:  # noqa: BLE001 - every kind is translated
            return ConnectionEnd("lost", self._translated(error))
        connection = self._connection = RealtimeConnection(socket, translate=self._translated)
        log.info("realtime_session_opened", model=settings.model)
        beside = [("realtime-renewal", self._renew(connection))]
        if self._availability.on_trial:
            beside.append(("realtime-trial", self._end_unless_ready(connection)))
        try:
            self._send(self._protocol.on_connected(self._brief()))
            for item_id in self._protocol.resumed_items:
                # Report to the room which items hold the beginning of the reply.
                self._hand_on(ReplyPiece(item_id))
            return await connection.hold(
                on_event=lambda event: self._take(self._protocol.receive(event)), beside=beside
            )
        finally:
            self._connection = None
            self.ready.clear()
            await connection.close()

    async def _renew(self, connection: RealtimeConnection) -> None:
        """End the connection before the server does: when the session is idle, or after a grace period."""
        await self._clock.sleep(self._settings.session_s)
        deadline = self._clock.monotonic() + RENEWAL_PATIENCE_S
        while not self._protocol.idle and self._clock.monotonic() < deadline:
            await self._clock.sleep(IDLE_LOOK_S)
        connection.end("expiring")

    async def _end_unless_ready(self, connection: RealtimeConnection) -> None:
        """End the connection if it does not become ready in time."""
        await self._clock.sleep(CONNECT_TIMEOUT_S)
        if not self.ready.is_set():
            connection.end("lost", self._translated(TimeoutError()))

    # -- effects ---------------------------------------------------------------------------------------------

    def _take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendEvent(event):
                    self._send([event])
                case InputTranscribed():
                    self._availability.record_transcription()
                    self._inputs.resolve(effect)
                case AudioDelta(item_id, pcm):
                    self._hand_on(ReplyPiece(item_id, pcm=pcm))
                case TextDelta(item_id, words):
                    self._hand_on(ReplyPiece(item_id, words=words))
                case ResponseEnded():
                    self._hand_on(effect)
                case ResponseBilled(input_tokens, output_tokens):
                    log.info(
                        "model_call_finished",
                        purpose="speech-to-speech",
                        model=self._settings.model,
                        prompt_tokens=input_tokens,
                        completion_tokens=output_tokens,
                    )
                case ToolCallRequested(call):
                    self._start_tool(call)
                case SessionReady():
                    self.ready.set()
                    self._came_back()
                case SessionExpired():
                    if self._connection is not None:
                        self._connection.end("expired")
                case ServerError(code, message):
                    self._trouble(code, message)
                case _:
                    assert_never(effect)

    def _trouble(self, code: str, message: str) -> None:
        log.warning("realtime_error", code=code, message_chars=len(message))
        error = error_for_code(code, model=self._settings.model, where=self._where)
        if not error.retryable and self._connection is not None:
            self._connection.end("lost", error)

    def _hand_on(self, piece: ReplyPiece | ResponseEnded) -> None:
        if self._pieces is None or self._pieces.put(piece):
            return
        # What waits is played to its end. The model is told where that is, and makes no more.
        assert isinstance(piece, ReplyPiece), "the end of a reply always has room"
        self._cut_replies += 1
        log.warning("realtime_reply_cut_off", waiting_s=MOST_SOUND_S)
        lost_ms = 0 if piece.pcm is None else len(piece.pcm) * 1000 // REALTIME_RATE_HZ
        self._send(self._protocol.end_reply(lost_ms=lost_ms))

    def _send(self, events: Sequence[ClientEvent]) -> None:
        if self._connection is not None and not self._connection.send(events):
            error = RealtimeError("{where} takes no more sound; the network is too slow.", where=self._where)
            self._overflows += 1
            self._connection.end("lost", error)

    def _start_tool(self, call: RealtimeToolCall) -> None:
        if self._connection is not None:
            self._connection.start(self._call(call), f"realtime-tool-{call.name}")

    async def _call(self, call: RealtimeToolCall) -> None:
        self._send(self._protocol.tool_output(call.call_id, await tool_output(call, self._run_tool)))

    # -- failing ---------------------------------------------------------------------------------------------

    def _answer_failed(self, error: RealtimeError) -> None:
        if self._availability.record_reply_failure(error):
            self._on_given_up(error)

    def _not_written(self) -> None:
        """Count a missing transcription, in `turns` mode only: in `mixed` mode the local recogniser transcribes."""
        log.warning("realtime_not_written", within_s=self._limits.hear_timeout_s)
        error = RealtimeError(NOT_WRITTEN)
        if self._settings.mode == "turns" and self._availability.record_transcription_failure(error):
            self._on_given_up(error)

    async def _connection_failed(self, error: RealtimeError, *, held: bool) -> None:
        """Count a lost connection, unless it had lasted long enough (`held`), and wait before the next attempt."""
        if self._availability.given_up is not None:
            return
        if held:
            self._availability.record_connection()
        elif self._availability.record_connection_failure(error):
            self._on_given_up(error)
        elif backoff_s := self._availability.backoff_s:
            await self._clock.sleep(backoff_s)

    def _on_given_up(self, error: RealtimeError) -> None:
        """End all that waits for the model, and tell the room."""
        log.error("realtime_given_up", problem=error, failures=self._availability.failures, lasting=not error.retryable)
        self._inputs.fail(RealtimeError("{why}", why=error, retryable=False))
        self._hand_on(ResponseEnded(ResponseStatus.FAILED, GIVEN_UP))
        self._protocol.reset()
        if self._connection is not None:
            self._connection.end("lost", error)
        self._on_event(RealtimeFailed(error, lasting=not error.retryable))

    def _still_gone(self, error: RealtimeError) -> None:
        """Log a failed retry. Give up for good if a retry can no longer help."""
        log.info("realtime_still_gone", problem=error)
        if not error.retryable:
            self._availability.give_up(error)
            self._on_given_up(error)

    def _came_back(self) -> None:
        """Handle an accepted configuration. A session that had been given up has now recovered."""
        if self._availability.record_recovery():
            log.info("realtime_restored")
            self._on_event(RealtimeRestored())

    def _refuse_when_failed(self) -> None:
        if (given_up := self._availability.given_up) is not None:
            raise RealtimeError("{why}", why=given_up, retryable=False)

    @property
    def _where(self) -> str:
        return address(self._settings.base_url)

    def _translated(self, error: BaseException) -> RealtimeError:
        return translate_error(error, model=self._settings.model, where=self._where)
