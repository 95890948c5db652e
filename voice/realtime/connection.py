"""One connection to a Realtime endpoint over OpenAI's client. It sends queued events and passes received events on.

It does not interpret events. The caller of `end` gives the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from voice.cancellation import fail_if_cancelled_inside
from voice.endpoint_settings import is_this_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from typing import TypeAlias

    import openai
    from openai.resources.realtime.realtime import AsyncRealtimeConnection

    from voice.errors import RealtimeError
    from voice.realtime.wire import ClientEvent

    Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

log = structlog.get_logger()

# Events that may wait for the socket: minutes of sound. If more would wait, the socket is stuck.
OUTGOING_EVENTS = 2_048
SEND_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 1.0
MAX_MESSAGE_BYTES = 16 * 1024 * 1024


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
    """An open socket. `hold` runs it to its end; `translate` turns any exception into a `RealtimeError`.

    *Ownership*: `hold` owns its tasks and ends them. The caller of `dial` must call `close`.
    """

    def __init__(self, socket: AsyncRealtimeConnection, *, translate: Callable[[BaseException], RealtimeError]) -> None:
        self._socket = socket
        self._translate = translate
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

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` until the connection ends."""
        task = self._tasks.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def end(self, reason: str, error: RealtimeError | None = None) -> None:
        """End the connection. Only the first call has an effect."""
        if not self._over.done():
            self._over.set_result(ConnectionEnd(reason, error))

    async def hold(
        self, *, on_event: Callable[[Mapping[str, Any]], None], beside: Iterable[tuple[str, Work]] = ()
    ) -> ConnectionEnd:
        """Read and write until the connection ends, and return why. `beside`: what runs meanwhile, with names."""
        lasting: list[tuple[str, Work]] = [
            ("realtime-read", partial(self._read, on_event)),
            ("realtime-write", self._write),
            *beside,
        ]
        async with self._tasks:
            for name, work in lasting:
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
            self.end("lost", self._translate(error))

    async def _read(self, on_event: Callable[[Mapping[str, Any]], None]) -> None:
        while True:
            event = json.loads(await self._socket.recv_bytes())
            if not isinstance(event, dict):
                raise TypeError("not an object")
            try:
                on_event(event)
            except Exception as error:
                # It looks like an event that is not of the protocol, and may be a defect of ours.
                log.warning("realtime_event_failed", error_class=type(error).__name__, exc_info=error)
                raise

    async def _write(self) -> None:
        while True:
            event = await self._outgoing.get()
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._socket.send_raw(json.dumps(event))
