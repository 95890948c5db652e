"""One connection to a Realtime endpoint over OpenAI's client. It sends queued events and passes received events on.

It does not interpret events. The caller of `end` gives the reason. `ErrorMessages` says in plain sentences what failed,
and whether a retry can help.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import openai
import structlog
from websockets.exceptions import InvalidStatus, InvalidURI, SecurityError, WebSocketException

from voice.cancellation import fail_if_cancelled_inside
from voice.endpoint_settings import is_this_machine
from voice.errors import RealtimeError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from openai.resources.realtime.realtime import AsyncRealtimeConnection

    from voice.realtime.effects import ConfigurationRefused
    from voice.realtime.wire import ClientEvent

    Work: TypeAlias = Callable[[], Coroutine[Any, Any, object]]

log = structlog.get_logger()

# Events that may wait for the socket: minutes of sound. If more would wait, the socket is stuck.
OUTGOING_EVENTS = 2_048
SEND_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 1.0
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
# What people read in place of the error messages, which are for the operator.
_AWAY = "The speech-to-speech model does not answer at the moment."
# Error codes of the protocol whose cause a person must fix.
_LASTING = {
    "insufficient_quota": "The account at {where} has no quota left for speech-to-speech. Look at its billing.",
    "invalid_api_key": "{where} refused the key. Set realtime.api_key to a valid one.",
    "model_not_found": "{where} does not know the model {model}. Set realtime.model to one that it serves.",
}


@dataclass(frozen=True, slots=True)
class ConnectionEnd:
    """Why a connection ended: expiring (we renew it), reconfigured (we renew it without a tool that the server
    refused), expired, or lost because of `error`.
    """

    reason: str
    error: RealtimeError | None = None


async def dial(client: openai.AsyncOpenAI, *, model: str, within_s: float) -> AsyncRealtimeConnection:
    """Return an open socket. Raises the client library's errors, and `TimeoutError`."""
    options: dict[str, Any] = {
        "open_timeout": within_s,
        "close_timeout": CLOSE_TIMEOUT_S,
        "max_size": MAX_MESSAGE_BYTES,
        "compression": None,
    }
    if is_this_machine(client.base_url.host):
        # The library would ask a proxy of the environment.
        options["proxy"] = None
    manager = client.realtime.connect(
        model=model,
        websocket_connection_options=options,  # type: ignore[arg-type]
    )
    async with asyncio.timeout(within_s):
        return await manager.enter()


class RealtimeConnection:
    """An open socket. `hold` runs it to its end; `errors` makes a `RealtimeError` of any exception.

    *Ownership*: `hold` owns its tasks and ends them. The caller of `dial` must call `close`.
    """

    def __init__(self, socket: AsyncRealtimeConnection, errors: ErrorMessages) -> None:
        self._socket = socket
        self._errors = errors
        self._over: asyncio.Future[ConnectionEnd] = asyncio.get_running_loop().create_future()
        self._outgoing: asyncio.Queue[ClientEvent] = asyncio.Queue(OUTGOING_EVENTS)
        self._tasks = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """Return how many events wait to be sent."""
        return self._outgoing.qsize()

    def send(self, events: Sequence[ClientEvent]) -> bool:
        """Queue events; return False if the queue is full."""
        try:
            for event in events:
                self._outgoing.put_nowait(event)
        except asyncio.QueueFull:
            return False
        return True

    async def receive(self) -> dict[str, Any]:
        """Return the next event. Raises any error of the socket."""
        event = json.loads(await self._socket.recv_bytes())
        if not isinstance(event, dict):
            raise TypeError("not an object")
        return event

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` until the connection ends."""
        task = self._tasks.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def end(self, reason: str, error: RealtimeError | None = None) -> None:
        """End the connection. Only the first call has an effect."""
        if not self._over.done():
            self._over.set_result(ConnectionEnd(reason, error))

    async def hold(self, beside: Iterable[tuple[str, Work]]) -> ConnectionEnd:
        """Write until the connection ends, and return why. `beside`: what runs meanwhile, such as reading, by name."""
        async with self._tasks:
            for name, work in [("realtime-write", self._write), *beside]:
                self.start(self._last(work), name)
            end = await self._over
            for task in list(self._running):
                task.cancel()
        return end

    async def close(self) -> None:
        """Close the socket. Never raises, because the connection may already be closed."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2 * CLOSE_TIMEOUT_S):
                await self._socket.close()

    async def _last(self, work: Work) -> None:
        """Run what is needed as long as the connection lasts; without it, the connection is lost."""
        try:
            await fail_if_cancelled_inside(work)
        except Exception as error:  # noqa: BLE001 - every kind is translated
            self.end("lost", self._errors.translate(error))

    async def _write(self) -> None:
        while True:
            event = await self._outgoing.get()
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._socket.send_raw(json.dumps(event))


# What an error means, with the remedy, and whether a retry can help. Of several that fit, the first.
_MEANINGS: tuple[tuple[type[BaseException], str, bool], ...] = (
    (InvalidURI, "{where} is not the address of a Realtime endpoint. Check realtime.base_url.", False),
    (TimeoutError, "{where} did not answer in time. Check realtime.base_url and that the server is running.", True),
    (WebSocketException, "The speech-to-speech connection to {where} broke.", True),
    (openai.OpenAIError, "The client library could not connect. Check realtime.api_key.", False),
    (OSError, "Nothing answers at {where}. Check realtime.base_url and that the server is running.", True),
    (BaseException, "{where} sent something that is not the Realtime protocol. Check realtime.base_url.", True),
)


@dataclass(frozen=True, slots=True)
class ErrorMessages:
    """Makes the errors of one endpoint. `where`: its address, which is in messages for the operator alone."""

    model: str
    where: str

    def translate(self, error: BaseException) -> RealtimeError:
        """Convert an exception of connecting or of a connection to an error whose message names the remedy."""
        match error:
            case RealtimeError():
                return error
            case InvalidStatus():
                return self._refused(error.response.status_code)
            case SecurityError() if isinstance(error.__cause__, InvalidStatus):
                # OpenAI's client follows redirects on the same server alone.
                return self._error(
                    "{where} answered with a redirect to another address, which is not followed. If you trust that "
                    "server, set realtime.base_url to its address.",
                    retryable=False,
                )
            case _:
                _, template, retryable = next(meaning for meaning in _MEANINGS if isinstance(error, meaning[0]))
                return self._error(template, retryable=retryable)

    def for_code(self, code: str) -> RealtimeError:
        """Return the error for a code that the endpoint sent."""
        lasting = _LASTING.get(code)
        if lasting is not None:
            return self._error(lasting, retryable=False)
        return self._error(
            "The speech-to-speech model {model} at {where} failed ({code}). Try again.",
            code=code,
        )

    def for_configuration(self, refused: ConfigurationRefused) -> RealtimeError:
        """Return the error for a configuration that the endpoint did not accept."""
        known = self.for_code(refused.code)
        if not (refused.mistaken and known.retryable):
            return known
        return self._error(
            "{where} refused the settings of the session ({setting}). Check realtime.voice and asr.languages; it must "
            "have the model gpt-4o-mini-transcribe.",
            setting=refused.setting or refused.code,
            retryable=False,
        )

    def ended(self) -> RealtimeError:
        """Return the error for a connection that the endpoint closed without a reason."""
        return self._error("{where} ended the session.")

    def too_slow(self) -> RealtimeError:
        """Return the error for a connection that takes less than is to be sent."""
        return self._error("{where} takes no more sound; the network is too slow.")

    def _refused(self, status: int) -> RealtimeError:
        if status in {401, 403}:
            return self.for_code("invalid_api_key")
        if status == 404:
            return self.for_code("model_not_found")
        if status == 429:
            return self._error("{where} is over its rate limit or quota. Wait a little, or look at the account.")
        return self._error(
            "{where} refused the connection (status {status}). Try again, or look at its log.",
            status=str(status),
            retryable=status >= 500,
        )

    def _error(self, template: str, *, retryable: bool = True, **values: object) -> RealtimeError:
        error = RealtimeError(template, retryable=retryable, model=self.model, where=self.where, **values)
        return error.for_people(_AWAY)
