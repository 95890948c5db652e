"""A link between two processes over a websocket: each side asks and tells, and handles what the other one does.

Both sides are alike. What comes in is hostile until it is checked: it has a size limit, and what is unknown or of a
wrong type is refused, with a line in the log that has no content. The websocket's heartbeats tell within seconds that
the other side is gone or frozen.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from aiohttp import WSMsgType

from bot.background_task import background_task, logged_task
from bot.errors import KNOWN_ERRORS
from bot.remote.messages.frames import (
    AnswerT,
    Head,
    MalformedError,
    Notice,
    Request,
    answer_type,
    content_of,
    frame_of,
    head_of,
)
from bot.remote.messages.wire_error import OtherProcessError, WireError, error_from_wire, error_to_wire
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from aiohttp import WSMessage

    from bot.remote.link.handlers import Handlers

log = structlog.get_logger()

# Seconds of silence after which a room's process pings; the answer must come within half of that. So one whose gateway
# process stalls for two seconds, on a machine that is too small for it, does not cut it off.
HEARTBEAT_S = 6.0
# How long the other side may take to read what is sent; less than the heartbeat takes.
_SEND_S = 5.0
_CLOSE_S = 2.0
# Frames that wait to be sent. The other side has stopped reading by then, so the link ends.
MOST_WAITING = 1_000
# Requests that are being answered at once; more are refused. A room asks a handful.
MOST_ANSWERING = 100
# Frames that were refused. A side of the same version sends none, so the link ends.
MOST_REFUSED = 20

AWAY = Text("The process that has my connection to Discord, or my room, is not there at the moment.")
NO_ANSWER = Text("Another process of this bot did not answer within {seconds} s.")
BUSY = Text("Another process of this bot is too busy to answer.")
NOT_SENT = Text("What I wanted to send to another process of this bot cannot be sent; the log says what.")
NOT_UNDERSTOOD = Text("Another process of this bot did not understand me; its log says why.")


class Socket(Protocol):
    """An open websocket of aiohttp, at either end."""

    async def receive(self) -> WSMessage:
        """Return the next frame, or why there is none any more."""

    async def send_str(self, data: str) -> None:
        """Send a frame."""

    async def close(self) -> bool:
        """End the connection."""


class Peer(Protocol):
    """The other process, for who asks and tells. `MessageLink` and `GatewayLink` implement it."""

    @property
    def handlers(self) -> Handlers:
        """Return who handles what the other side asks and tells."""

    @property
    def is_open(self) -> bool:
        """Return whether the other side is there."""

    async def ask(self, request: Request[AnswerT], *, within_s: float) -> AnswerT:
        """Return the answer. Raises the error of the other side, or `OtherProcessError` if there is no answer."""

    def tell(self, notice: Notice) -> None:
        """Send a notice. It is lost if the other side is away."""


class MessageLink:
    """One connection. Implements `Peer`. `name`: of its tasks.

    *Ownership*: who calls `run` owns the tasks; they end with it.
    """

    def __init__(self, socket: Socket, handlers: Handlers, *, name: str) -> None:
        self._socket = socket
        self._handlers = handlers
        self._name = name
        self._numbers = itertools.count(1)
        self._asked: dict[int, tuple[Any, asyncio.Future[Any]]] = {}
        # Full: the other side does not read, and the link ends.
        self._outgoing: asyncio.Queue[str] = asyncio.Queue(maxsize=MOST_WAITING)
        self._answering: set[asyncio.Task[None]] = set()
        self._ending = asyncio.Event()
        self._runs = self._is_over = False
        self._refused = 0
        self._on_closed: list[Callable[[], None]] = []

    @property
    def handlers(self) -> Handlers:
        return self._handlers

    @property
    def is_open(self) -> bool:
        return not self._ending.is_set()

    def on_closed(self, call: Callable[[], None]) -> None:
        """Call `call` once the link is over; at once if it is over already."""
        if self._is_over:
            call()
        else:
            self._on_closed.append(call)

    def close(self) -> None:
        """End the link. `run` then returns. A link that does not run yet is over at once."""
        self._ending.set()
        if not self._runs and not self._is_over:
            self._fail_asked()
            self._end()

    async def run(self) -> None:
        """Send and receive until either side ends the link."""
        try:
            if not self._is_over:
                await self._exchange()
        finally:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._socket.close()

    async def _exchange(self) -> None:
        self._runs = True
        try:
            async with (
                background_task(self._until_over(self._receive), name=f"{self._name}-receive"),
                background_task(self._until_over(self._send), name=f"{self._name}-send"),
            ):
                try:
                    await self._ending.wait()
                finally:
                    self._ending.set()
                    self._fail_asked()
        finally:
            for task in self._answering:
                task.cancel()
            await asyncio.gather(*self._answering, return_exceptions=True)
            self._end()

    async def _until_over(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Receive or send, and end the link when that ends. A connection that breaks is no failure."""
        try:
            with contextlib.suppress(OSError):
                await work()
        finally:
            self._ending.set()

    def _fail_asked(self) -> None:
        for _, answer in self._asked.values():
            if not answer.done():
                answer.set_exception(OtherProcessError(AWAY))

    def _end(self) -> None:
        """Be over, and tell everybody who has asked for it."""
        self._is_over = True
        for call in self._on_closed:
            try:
                call()
            except Exception:
                # The others must know too: a room is lost, a seat is gone.
                log.exception("link_end_not_handled", link=self._name)

    async def ask(self, request: Request[AnswerT], *, within_s: float) -> AnswerT:
        """See `Peer.ask`. *Cancellation*: the other side still does what was asked."""
        if not self.is_open:
            raise OtherProcessError(AWAY)
        number = next(self._numbers)
        answer: asyncio.Future[AnswerT] = asyncio.get_running_loop().create_future()
        frame = self._frame(Head("ask", number, type(request).__name__), request, type(request))
        self._asked[number] = (answer_type(type(request)), answer)
        try:
            self._put(frame)
            async with asyncio.timeout(within_s):
                return await answer
        except TimeoutError as error:
            raise OtherProcessError(NO_ANSWER.fill(seconds=within_s)) from error
        finally:
            del self._asked[number]

    def tell(self, notice: Notice) -> None:
        """See `Peer.tell`. A notice that cannot be written as text is logged and lost."""
        if not self.is_open:
            return
        with contextlib.suppress(OtherProcessError):
            self._put(self._frame(Head("tell", 0, type(notice).__name__), notice, type(notice)))

    def _frame(self, head: Head, content: object, kind: Any) -> str:
        """Return a message as the text of a websocket frame. `kind`: the type of `content`, as `frame_of` takes it.

        Raises `OtherProcessError` for what cannot be sent, and logs why without the content: it is longer than
        `MOST_BYTES`, of another type, or has half of a character, which no text can have.
        """
        try:
            return frame_of(head, content, kind)
        except MalformedError as error:
            log.error("message_not_sent", link=self._name, problem=error)  # noqa: TRY400 - it quotes the content
            raise OtherProcessError(NOT_SENT) from error
        except OtherProcessError as error:
            log.warning("message_not_sent", link=self._name, message_name=head.name, problem=error)
            raise

    def _put(self, frame: str) -> None:
        try:
            self._outgoing.put_nowait(frame)
        except asyncio.QueueFull:
            log.warning("link_overflowed", link=self._name, waiting=MOST_WAITING)
            self._ending.set()

    async def _send(self) -> None:
        while True:
            frame = await self._outgoing.get()
            try:
                async with asyncio.timeout(_SEND_S):
                    await self._socket.send_str(frame)
            except (OSError, TimeoutError) as error:
                log.info("link_not_written", link=self._name, error_class=type(error).__name__)
                return

    async def _receive(self) -> None:
        while self._refused < MOST_REFUSED:
            message = await self._socket.receive()
            if message.type is not WSMsgType.TEXT:
                return
            try:
                self._take(message.data)
            except MalformedError as error:
                self._refused += 1
                log.warning("message_refused", link=self._name, problem=error)

    def _take(self, frame: str) -> None:
        """Handle one frame. Raises `MalformedError`."""
        head, body = head_of(frame)
        match head.kind:
            case "tell":
                notice, hear = _known(self._handlers.hears, head)
                told = content_of(body, notice)
                try:
                    hear(told)
                except Exception:
                    log.exception("message_not_handled", link=self._name, message_name=head.name)
            case "ask":
                self._take_request(head, body)
            case "answer" | "error":
                self._take_answer(head, body)

    def _take_request(self, head: Head, body: str) -> None:
        try:
            request, handler = _known(self._handlers.answers, head)
            asked = content_of(body, request)
        except MalformedError:
            self._refuse(head, OtherProcessError(NOT_UNDERSTOOD))
            raise
        if len(self._answering) >= MOST_ANSWERING:
            self._refuse(head, OtherProcessError(BUSY))
            return

        async def answer() -> None:
            try:
                answered = await handler(asked)
                reply = self._frame(Head("answer", head.number, head.name), answered, answer_type(request))
            except KNOWN_ERRORS as error:
                self._refuse(head, error)
            except Exception as error:
                log.exception("request_failed", link=self._name, message_name=head.name)
                self._refuse(head, error)
            else:
                self._put(reply)

        task = logged_task(answer(), name=f"{self._name}-{head.name}")
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    def _refuse(self, head: Head, error: Exception) -> None:
        refusal = Head("error", head.number)
        try:
            frame = self._frame(refusal, error_to_wire(error), WireError)
        except OtherProcessError as unsent:
            # Who has asked shall not wait for an answer that never comes.
            frame = self._frame(refusal, error_to_wire(unsent), WireError)
        self._put(frame)

    def _take_answer(self, head: Head, body: str) -> None:
        kind, answer = self._asked.get(head.number, (None, None))
        if answer is None or answer.done():
            # Who asked has given up.
            return
        try:
            if head.kind == "answer":
                answer.set_result(content_of(body, kind))
            else:
                answer.set_exception(error_from_wire(content_of(body, WireError)))
        except MalformedError:
            answer.set_exception(OtherProcessError(NOT_UNDERSTOOD))
            raise


def _known(handlers: dict[str, Any], head: Head) -> tuple[Any, Any]:
    if head.name not in handlers:
        raise MalformedError(f"nobody handles {head.name[:40]!r}")
    kind, handler = handlers[head.name]
    return kind, handler
