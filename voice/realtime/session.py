"""One room's speech-to-speech session over OpenAI's client: speech goes to the model, and its replies come back.

The room and `voice.realtime.protocol` decide what is sent, and `voice.realtime.connector` keeps the session connected.
Each new connection starts with a current briefing; pending inputs and replies continue on it.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

import structlog

from voice.audio import LISTEN_RATE_HZ
from voice.endpoint_settings import address, without_secrets
from voice.errors import RealtimeError
from voice.queue_figures import QueueFigures
from voice.realtime.active_reply import milliseconds
from voice.realtime.availability import Availability, RealtimeWork
from voice.realtime.connector import RealtimeConnector
from voice.realtime.effects import (
    AudioDelta,
    ConfigurationRefused,
    InputTranscribed,
    ResponseEnded,
    ResponseStatus,
    SendEvent,
    ServerError,
    SessionExpired,
    SessionReady,
    TextDelta,
    ToolCallRequested,
    ToolRefused,
)
from voice.realtime.error_messages import ErrorMessages
from voice.realtime.open_responses import OpenResponses
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
from voice.realtime.untranscribed_inputs import AwaitedTranscripts
from voice.realtime.wire import SessionConfiguration, label_ids
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping

    from voice.audio import Pcm
    from voice.realtime.connector import AsyncClock
    from voice.realtime.effects import Effect
    from voice.realtime.open_responses import FinishedResponse
    from voice.realtime.port import (
        Briefing,
        ConversationItem,
        RealtimeNews,
        RealtimeTool,
        RealtimeToolCall,
        ReplyResumed,
        ToolRunner,
    )
    from voice.realtime.settings import RealtimeSettings


log = structlog.get_logger()

NOT_WRITTEN = "The speech-to-speech model did not write down what was said in time. Check realtime.transcription_model."
NO_ANSWER = "The speech-to-speech model did not answer in time. Ask again."
# The code of a reply that ended because its session was given up.
GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealtimeLimits:
    """How long to wait for the model, and how many failures to accept. The room uses the defaults; tests vary them."""

    # Seconds to wait for a transcription. After that the local recogniser is used.
    hear_timeout_s: float = 8.0
    # Seconds to wait for the first or the next sound of a reply; anew when a tool is called, and when it has answered.
    reply_timeout_s: float = 10.0
    # Failures in a row after which the room replies without the model.
    failures_before_fallback: int = 3
    # Seconds after which the session is renewed, with the summary and the recent turns: a minute less than OpenAI
    # allows.
    session_s: float = 3_540.0
    # Seconds after which a model that was given up is tried again. After a short disturbance of the service this costs
    # a minute. The time doubles each time that the model fails again before its first reply, up to half an hour.
    retry_after_s: float = 60.0


REALTIME_LIMITS = RealtimeLimits()


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
        run_tool: ToolRunner | None = None,
        language: str | None = None,
        limits: RealtimeLimits = REALTIME_LIMITS,
    ) -> None:
        self._settings = settings
        self._limits = limits
        self._brief = brief
        self._clock = clock
        self._on_event = on_event
        self._on_response = on_response
        self._run_tool = run_tool
        self._errors = ErrorMessages(settings.model, without_secrets(address(settings.base_url)))
        self._protocol = RealtimeProtocol(SessionConfiguration(settings.voice, settings.transcription_model, language))
        self._responses = OpenResponses()
        self._transcripts = AwaitedTranscripts()
        self._pieces: ReplyQueue | None = None
        # The time limit of the wait for the next of them.
        self._patience: asyncio.Timeout | None = None
        # How many replies were cut off because they were too long.
        self._cut_replies = 0
        self._availability = Availability(
            failures_in_a_row=limits.failures_before_fallback, retry_delay_s=limits.retry_after_s
        )
        self._connector = RealtimeConnector(
            self,
            settings,
            api_key=api_key,
            clock=clock,
            session_s=limits.session_s,
            availability=self._availability,
            errors=self._errors,
        )
        self.ready = self._connector.ready

    async def run(self) -> None:
        """Keep a session open. After giving up, try again later. Return when a retry cannot help."""
        try:
            await self._connector.run()
        finally:
            self._end_responses(ResponseStatus.CANCELLED)

    # -- called by the room ----------------------------------------------------------------------------------

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """See `Realtime.queues`."""
        to_speak_s = 0 if self._pieces is None else math.ceil(self._pieces.waiting_s)
        reply = QueueFigures("realtime_reply", to_speak_s, MOST_SOUND_S, {"full": self._cut_replies})
        return self._connector.queue, reply

    @property
    def usable(self) -> bool:
        """See `Realtime.usable`."""
        return self._availability.given_up is None

    def send_audio(self, pcm: Pcm, *, speakers: str) -> Awaitable[InputTranscript]:
        """See `Realtime.send_audio`."""
        self._refuse_when_failed()
        input_id, events = self._protocol.send_audio(resample(pcm, LISTEN_RATE_HZ, REALTIME_RATE_HZ), speakers=speakers)
        self._transcripts.add(input_id)
        self._connector.send(events)
        return self._transcript(input_id)

    async def _transcript(self, input_id: int) -> InputTranscript:
        try:
            found = await self._transcripts.wait(input_id, within_s=self._limits.hear_timeout_s)
        except TimeoutError as exc:
            item_id = self._protocol.drop_input(input_id)
            # Without a connection, its loss is what counts.
            if self._connector.connected:
                self._not_written()
            if item_id is None:
                raise RealtimeError(NOT_WRITTEN) from exc
            found = InputTranscribed(input_id, item_id, None)
        finally:
            self._protocol.drop_input(input_id)
        return InputTranscript(found.text, label_ids(input_id, found.item_id) if found.item_id else ())

    async def reply(self) -> AsyncGenerator[ReplyPiece | ReplyResumed, None]:
        """See `Realtime.reply`."""
        self._refuse_when_failed()
        pieces = self._pieces = ReplyQueue()
        self._connector.send(self._protocol.request_reply())
        while True:
            try:
                piece = await self._next_piece(pieces)
            except TimeoutError as exc:
                error = RealtimeError(NO_ANSWER)
                self._answer_failed(error)
                raise error from exc
            if not isinstance(piece, ResponseEnded):
                yield piece
                continue
            if piece.how is ResponseStatus.FAILED:
                failure = self._availability.given_up or self._errors.for_code(piece.code)
                if piece.code != GIVEN_UP:
                    self._answer_failed(failure)
                raise failure
            self._availability.record_success(RealtimeWork.REPLY)
            return

    async def _next_piece(self, pieces: ReplyQueue) -> ReplyPiece | ReplyResumed | ResponseEnded:
        async with asyncio.timeout(self._limits.reply_timeout_s) as patience:
            self._patience = patience
            try:
                return await pieces.take()
            finally:
                self._patience = None

    def _wait_anew(self) -> None:
        """Let the next piece of the reply take as long again: the time of a tool is not the model's."""
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time() + self._limits.reply_timeout_s)

    def interrupt(self, heard_ms: int) -> bool:
        """See `Realtime.interrupt`."""
        self._pieces = None
        truncates = self._protocol.can_truncate
        self._connector.send(self._protocol.interrupt(heard_ms))
        return truncates

    def add_item(self, item: ConversationItem) -> None:
        """See `Realtime.add_item`."""
        self._connector.send(self._protocol.add_item(item))

    def delete_items(self, item_ids: Iterable[str]) -> None:
        """See `Realtime.delete_items`."""
        self._connector.send(self._protocol.delete_items(item_ids))

    def delete_tool_calls(self) -> None:
        """See `Realtime.delete_tool_calls`."""
        self._connector.send(self._protocol.delete_tool_calls())

    def set_instructions(self, instructions: str) -> None:
        """See `Realtime.set_instructions`."""
        self._connector.send(self._protocol.set_instructions(instructions))

    def set_tools(self, tools: Iterable[RealtimeTool]) -> None:
        """See `Realtime.set_tools`."""
        self._connector.send(self._protocol.set_tools(tools))

    # -- called by the connector (`ConnectedSession`) ------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """See `ConnectedSession.idle`."""
        return self._protocol.idle

    def on_connected(self) -> None:
        """See `ConnectedSession.on_connected`."""
        self._connector.send(self._protocol.on_connected(self._brief()))
        if (resumed := self._protocol.resumed) is not None:
            self._hand_on(resumed)

    def on_server_event(self, event: Mapping[str, Any]) -> None:
        """See `ConnectedSession.on_server_event`."""
        if (finished := self._responses.receive(event, self._clock.monotonic())) is not None:
            self._on_response(finished)
        self._take(self._protocol.receive(event))

    def on_disconnected(self) -> None:
        """See `ConnectedSession.on_disconnected`."""
        self._end_responses(ResponseStatus.FAILED)
        self._take(self._protocol.on_disconnected())

    def on_renewed(self, reason: str) -> None:
        """See `ConnectedSession.on_renewed`."""
        self._on_event(RealtimeRenewed(reason))

    def on_given_up(self, error: RealtimeError) -> None:
        """End all that waits for the model, and tell the room. See `ConnectedSession.on_given_up`."""
        log.error("realtime_given_up", problem=error, failures=self._availability.failures, lasting=not error.retryable)
        self._transcripts.fail(RealtimeError("{why}", why=error, retryable=False))
        self._hand_on(ResponseEnded(ResponseStatus.FAILED, GIVEN_UP))
        self._protocol.reset()
        self._connector.end("lost", error)
        self._on_event(RealtimeFailed(error, lasting=not error.retryable))

    # -- effects ---------------------------------------------------------------------------------------------

    def _take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendEvent(event):
                    self._connector.send([event])
                case InputTranscribed():
                    self._availability.record_success(RealtimeWork.TRANSCRIPTION)
                    self._transcripts.resolve(effect)
                case AudioDelta(item_id, pcm):
                    self._hand_on(ReplyPiece(item_id, pcm=pcm))
                case TextDelta(item_id, words):
                    self._hand_on(ReplyPiece(item_id, words=words))
                case ResponseEnded():
                    self._hand_on(effect)
                case ToolCallRequested(call):
                    self._wait_anew()
                    self._connector.start(self._call(call), f"realtime-tool-{call.name}")
                case SessionReady():
                    self.ready.set()
                    self._came_back()
                case ConfigurationRefused():
                    self._connector.end("lost", self._errors.for_configuration(effect))
                case ToolRefused(tool, begins_anew):
                    log.warning("tool_schema_refused", model=self._settings.model, tool=tool)
                    if begins_anew:
                        self._connector.end("reconfigured")
                case SessionExpired():
                    self._connector.end("expired")
                case ServerError(code, message):
                    self._trouble(code, message)
                case _:
                    assert_never(effect)

    def _trouble(self, code: str, message: str) -> None:
        log.warning("realtime_error", code=code, message_chars=len(message))
        error = self._errors.for_code(code)
        if not error.retryable:
            self._connector.end("lost", error)

    def _hand_on(self, piece: ReplyPiece | ReplyResumed | ResponseEnded) -> None:
        if self._pieces is None or self._pieces.put(piece):
            return
        # What waits is played to its end. The model is told where that is, and makes no more.
        assert isinstance(piece, ReplyPiece), "only sound and words may have no room"
        self._cut_replies += 1
        log.warning("realtime_reply_cut_off", waiting_s=MOST_SOUND_S)
        lost_ms = 0 if piece.pcm is None else milliseconds(len(piece.pcm))
        self._connector.send(self._protocol.end_reply(lost_ms=lost_ms))

    async def _call(self, call: RealtimeToolCall) -> None:
        output = await tool_output(call, self._run_tool)
        if events := self._protocol.tool_output(call.call_id, output):
            self._wait_anew()
            self._connector.send(events)

    def _end_responses(self, status: ResponseStatus) -> None:
        """End the responses that went on when their connection ended."""
        for finished in self._responses.end_all(status, self._clock.monotonic()):
            self._on_response(finished)

    # -- failing ---------------------------------------------------------------------------------------------

    def _answer_failed(self, error: RealtimeError) -> None:
        if self._availability.record_failure(RealtimeWork.REPLY, error):
            self.on_given_up(error)

    def _not_written(self) -> None:
        """Count a missing transcription."""
        log.warning("realtime_not_written", within_s=self._limits.hear_timeout_s)
        error = RealtimeError(NOT_WRITTEN)
        if self._availability.record_failure(RealtimeWork.TRANSCRIPTION, error):
            self.on_given_up(error)

    def _came_back(self) -> None:
        """Handle an accepted configuration. A session that had been given up has now recovered."""
        if self._availability.record_recovery():
            log.info("realtime_restored")
            self._on_event(RealtimeRestored())

    def _refuse_when_failed(self) -> None:
        if (given_up := self._availability.given_up) is not None:
            raise RealtimeError("{why}", why=given_up, retryable=False)
