"""One room's speech-to-speech session over the official client: connects, renews, gives up, and hands sound on.

What is said when is decided by the room and `voice.realtime.protocol`; this shell sends, waits and counts failures.
A connection that ends is made anew with the briefing of that moment, before its time or after an accident, and what
was being said or asked goes on in the new one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, assert_never

import structlog

from voice.audio import LISTEN_RATE_HZ
from voice.endpoint import address, open_client
from voice.errors import RealtimeError
from voice.realtime.connection import ConnectionEnd, RealtimeConnection, dial
from voice.realtime.effects import (
    AudioDelta,
    InputTranscribed,
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
from voice.realtime.port import (
    REALTIME_RATE_HZ,
    InputTranscript,
    RealtimeFailed,
    RealtimeRenewed,
    RealtimeRestored,
    ReplyPiece,
)
from voice.realtime.protocol import RealtimeProtocol
from voice.realtime.reply_queue import ReplyQueue
from voice.realtime.wire import SessionConfiguration, label_ids
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence

    import openai

    from voice.audio import Pcm
    from voice.realtime.effects import Effect
    from voice.realtime.port import Briefing, ConversationItem, RealtimeNews, RealtimeTool, RealtimeToolCall, ToolRunner
    from voice.realtime.settings import RealtimeSettings
    from voice.realtime.wire import ClientEvent

log = structlog.get_logger()

# Less than an answer is waited for, so that the model can say that it did not find out.
TOOL_TIMEOUT_S = 5.0
# A connection that has lived so long was a good one, even if nobody spoke.
PROVEN_S = 60.0
# Between attempts after the first, second … failure in a row.
BACKOFF_S = (0.5, 1.0, 2.0, 5.0)
# How often a due renewal looks whether somebody still speaks.
IDLE_LOOK_S = 0.25
# Seconds that connecting may take.
CONNECT_TIMEOUT_S = 10.0
# Seconds that a due renewal waits for a moment in which nobody speaks.
RENEWAL_PATIENCE_S = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RealtimeLimits:
    """How long to wait for the model, and how many failures to bear. The room uses the defaults; tests vary them."""

    # Seconds to wait for the text of what was said; then the local recogniser is asked.
    hear_timeout_s: float = 8.0
    # Seconds to wait for an answer's sound to begin or go on.
    reply_timeout_s: float = 10.0
    # Failures in a row after which the room answers without the model.
    failures_before_fallback: int = 3


REALTIME_LIMITS = RealtimeLimits()

NOT_WRITTEN = "The speech-to-speech model did not write down what was said in time. Check realtime.transcription_model."
NO_ANSWER = "The speech-to-speech model did not answer in time. Ask again."
# The code of an answer that ends because its session is given up.
GIVEN_UP = "given_up"


class AsyncClock(Protocol):
    """Where the session reads the time and waits."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class RealtimeSession:
    """`voice.realtime.port.Realtime` over a websocket. `run` is its life.

    `brief` is asked at every connection what a fresh session must know. `on_event` is told of renewals, of giving up
    and of coming back, at once, and must not wait. *Ownership*: `run` is a task of the room; the other methods are
    called on the same loop. *Cancellation* of `run` hangs up; of `hear` and `reply`, stops waiting.
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
        self._hearing: dict[int, asyncio.Future[InputTranscribed]] = {}
        self._pieces: ReplyQueue | None = None
        self._failed: RealtimeError | None = None
        # Whether the connection at hand is to show that what was given up is well again.
        self._on_trial = False
        self._patience = FailureBudget(failures_in_a_row=limits.failures_before_fallback, rest_s=settings.retry_after_s)
        self.ready = asyncio.Event()

    # -- what the room asks ----------------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """Return whether it has not been given up, or is back."""
        return self._failed is None

    def hear(self, pcm: Pcm, *, speakers: str) -> Awaitable[InputTranscript]:
        """Say `pcm` (mono int16, 16 kHz) to the model. See `Realtime.hear`."""
        self._refuse_when_failed()
        input_id, events = self._protocol.hear(resample(pcm, LISTEN_RATE_HZ, REALTIME_RATE_HZ), speakers=speakers)
        heard: asyncio.Future[InputTranscribed] = asyncio.get_running_loop().create_future()
        self._hearing[input_id] = heard
        self._send(events)
        return self._heard(input_id, heard)

    async def _heard(self, input_id: int, heard: asyncio.Future[InputTranscribed]) -> InputTranscript:
        try:
            async with asyncio.timeout(self._limits.hear_timeout_s):
                found = await heard
        except TimeoutError as exc:
            item_id = self._protocol.give_up(input_id)
            if item_id is None:
                raise RealtimeError(NOT_WRITTEN) from exc
            self._not_written()
            found = InputTranscribed(input_id, item_id, None)
        finally:
            self._protocol.give_up(input_id)
            self._hearing.pop(input_id, None)
        return InputTranscript(found.text, label_ids(input_id, found.item_id) if found.item_id else ())

    async def reply(self) -> AsyncGenerator[ReplyPiece, None]:
        """Yield the model's answer as it comes. See `Realtime.reply`."""
        self._refuse_when_failed()
        pieces = self._pieces = ReplyQueue()
        self._send(self._protocol.ask())
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
                failure = self._failed or error_for_code(piece.code, model=self._settings.model, where=self._where)
                if piece.code != GIVEN_UP:
                    self._answer_failed(failure)
                raise failure
            self._patience.answered()
            return

    def interrupt(self, heard_ms: int) -> None:
        """Break the answer off. See `Realtime.interrupt`."""
        self._pieces = None
        self._send(self._protocol.interrupt(heard_ms))

    def tell(self, item: ConversationItem) -> None:
        """Put something written into the conversation."""
        self._send(self._protocol.tell(item))

    def forget(self, item_ids: Iterable[str]) -> None:
        """Take items out of the conversation."""
        self._send(self._protocol.forget(item_ids))

    def instruct(self, instructions: str) -> None:
        """Change the instructions."""
        self._send(self._protocol.instruct(instructions))

    def offer(self, tools: Iterable[RealtimeTool]) -> None:
        """Change what the model may call."""
        self._send(self._protocol.offer(tools))

    # -- life ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep a session open. Given up, it is tried again after a rest; return when that could not help."""
        client = open_client(self._settings.base_url, self._api_key, timeout_s=CONNECT_TIMEOUT_S)
        try:
            while self._failed is None or self._failed.retryable:
                if self._failed is not None:
                    await self._clock.sleep(self._patience.rest_s)
                await self._live_once(client)
        finally:
            self.ready.clear()
            await client.close()

    async def _live_once(self, client: openai.AsyncOpenAI) -> None:
        """Hold one connection to its end, and draw the conclusions."""
        given_up, opened_at = self._failed, self._clock.monotonic()
        self._on_trial = given_up is not None
        end = await self._connected(client)
        self._on_trial = False
        self._take(self._protocol.lost())
        if end.reason != "expiring":
            error = end.error or RealtimeError(f"{self._where} ended the session.")
            if given_up is not None and self._failed is given_up:
                self._still_gone(error)
            else:
                log.warning("realtime_connection_ended", reason=end.reason, problem=str(end.error or ""))
                held = error.retryable and self._clock.monotonic() - opened_at >= PROVEN_S
                await self._connection_failed(error, held=held)
        if self._failed is None:
            self._on_event(RealtimeRenewed(end.reason))

    async def _connected(self, client: openai.AsyncOpenAI) -> ConnectionEnd:
        """Hold one connection to its end and return why it ended."""
        settings = self._settings
        try:
            socket = await dial(client, model=settings.model, within_s=CONNECT_TIMEOUT_S)
        except Exception as error:  # noqa: BLE001 - every kind is translated
            return ConnectionEnd("lost", self._translated(error))
        connection = self._connection = RealtimeConnection(socket, translated=self._translated)
        log.info("realtime_session_opened", model=settings.model)
        beside = [("realtime-renewal", self._renew(connection))]
        if self._on_trial:
            beside.append(("realtime-trial", self._end_unless_ready(connection)))
        try:
            self._send(self._protocol.opened(self._brief()))
            for item_id in self._protocol.begun:
                # The room knows then what holds the answer.
                self._hand_on(ReplyPiece(item_id))
            return await connection.hold(
                on_event=lambda event: self._take(self._protocol.receive(event)), beside=beside
            )
        finally:
            self._connection = None
            self.ready.clear()
            await connection.close()

    async def _renew(self, connection: RealtimeConnection) -> None:
        """End the connection before the server does, when nobody speaks; at the latest when patience is over."""
        await self._clock.sleep(self._settings.session_s)
        deadline = self._clock.monotonic() + RENEWAL_PATIENCE_S
        while not self._protocol.idle and self._clock.monotonic() < deadline:
            await self._clock.sleep(IDLE_LOOK_S)
        connection.end("expiring")

    async def _end_unless_ready(self, connection: RealtimeConnection) -> None:
        """End a connection over which nothing comes."""
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
                    self._patience.wrote()
                    heard = self._hearing.get(effect.input_id)
                    if heard is not None and not heard.done():
                        heard.set_result(effect)
                case AudioDelta(item_id, pcm):
                    self._hand_on(ReplyPiece(item_id, pcm=pcm))
                case TextDelta(item_id, words):
                    self._hand_on(ReplyPiece(item_id, words=words))
                case ResponseEnded():
                    self._hand_on(effect)
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
        log.warning("realtime_error", code=code, problem=message[:200])
        error = error_for_code(code, model=self._settings.model, where=self._where)
        if not error.retryable and self._connection is not None:
            self._connection.end("lost", error)

    def _hand_on(self, piece: ReplyPiece | ResponseEnded) -> None:
        if self._pieces is not None:
            self._pieces.put(piece)

    def _send(self, events: Sequence[ClientEvent]) -> None:
        if self._connection is not None and not self._connection.send(events):
            error = RealtimeError(f"{self._where} takes no more sound; the network is too slow.")
            self._connection.end("lost", error)

    def _start_tool(self, call: RealtimeToolCall) -> None:
        if self._connection is not None:
            self._connection.start(self._call(call), f"realtime-tool-{call.name}")

    async def _call(self, call: RealtimeToolCall) -> None:
        output = "There is no such tool."
        if self._run_tool is not None:
            try:
                async with asyncio.timeout(TOOL_TIMEOUT_S):
                    output = await self._run_tool(call)
            except TimeoutError:
                output = "The tool took too long."
            except Exception as error:  # noqa: BLE001 - a tool's failure is told to the model, not to the room
                log.warning("realtime_tool_failed", tool=call.name, error_class=type(error).__name__)
                output = "The tool failed."
        self._send(self._protocol.tool_output(call.call_id, output))

    # -- failing ---------------------------------------------------------------------------------------------

    def _answer_failed(self, error: RealtimeError) -> None:
        if self._failed is None:
            self._patience.failed()
            self._give_up_if_due(error)

    def _not_written(self) -> None:
        """Count it where somebody waits for the text: what is heard mixed is written down elsewhere."""
        log.warning("realtime_not_written", within_s=self._limits.hear_timeout_s)
        if self._failed is None and self._settings.mode == "turns":
            self._patience.unwritten()
            self._give_up_if_due(RealtimeError(NOT_WRITTEN))

    async def _connection_failed(self, error: RealtimeError, *, held: bool) -> None:
        """Count it, unless it had `held` for long, and wait a little before the next. Given up is given up."""
        if self._failed is not None:
            return
        if held:
            self._patience.connected()
            return
        self._patience.lost()
        self._give_up_if_due(error)
        if self._failed is None and self._patience.failures > 1:
            await self._clock.sleep(BACKOFF_S[min(self._patience.failures - 2, len(BACKOFF_S) - 1)])

    def _give_up_if_due(self, error: RealtimeError) -> None:
        if not error.retryable or self._patience.exhausted:
            self._give_up(error)

    def _give_up(self, error: RealtimeError) -> None:
        self._failed = error
        log.error(
            "realtime_given_up", problem=str(error), failures=self._patience.failures, lasting=not error.retryable
        )
        for heard in self._hearing.values():
            if not heard.done():
                heard.set_exception(RealtimeError(str(error), retryable=False))
        self._hand_on(ResponseEnded(ResponseStatus.FAILED, GIVEN_UP))
        self._protocol.abandon()
        if self._connection is not None:
            self._connection.end("lost", error)
        self._on_event(RealtimeFailed(str(error), lasting=not error.retryable))

    def _still_gone(self, error: RealtimeError) -> None:
        """It was tried again in vain. What has become lasting meanwhile is told."""
        log.info("realtime_still_gone", problem=str(error))
        if not error.retryable:
            self._give_up(error)

    def _came_back(self) -> None:
        """The server took the configuration; where it had been given up, it is well again."""
        if not self._on_trial:
            return
        self._on_trial, self._failed = False, None
        self._patience.came_back()
        log.info("realtime_restored")
        self._on_event(RealtimeRestored())

    def _refuse_when_failed(self) -> None:
        if self._failed is not None:
            raise RealtimeError(str(self._failed), retryable=False)

    @property
    def _where(self) -> str:
        return address(self._settings.base_url)

    def _translated(self, error: BaseException) -> RealtimeError:
        return translate_error(error, model=self._settings.model, where=self._where)
