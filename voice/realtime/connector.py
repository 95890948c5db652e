"""Keeps one speech-to-speech session connected: opens each connection, renews it in time, and tries again after a loss.

`voice.realtime.session` runs over the connections; it decides what is sent and what a received event means.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from voice.endpoint import open_client
from voice.queue_figures import QueueFigures
from voice.realtime.availability import Availability, RealtimeWork
from voice.realtime.connection import OUTGOING_EVENTS, ConnectionEnd, RealtimeConnection, dial

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    import openai

    from voice.errors import RealtimeError
    from voice.realtime.error_messages import ErrorMessages
    from voice.realtime.settings import RealtimeSettings
    from voice.realtime.wire import ClientEvent

log = structlog.get_logger()

# A connection that lasted this long counts as good, even if nobody spoke.
PROVEN_S = 60.0
# Seconds between two checks whether the session is idle, while a renewal is due.
IDLE_LOOK_S = 0.25
# Reasons for which we end a connection that works, to open another at once.
PLANNED = frozenset({"expiring", "reconfigured"})
# Maximum seconds for connecting.
CONNECT_TIMEOUT_S = 10.0
# Maximum seconds that a due renewal waits until the session is idle.
RENEWAL_PATIENCE_S = 45.0


class AsyncClock(Protocol):
    """The time and sleep that a session uses."""

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""

    async def sleep(self, seconds: float) -> None:
        """Sleep for `seconds`."""


class ConnectedSession(Protocol):
    """What runs over the connections; `voice.realtime.session.RealtimeSession` implements it."""

    @property
    def idle(self) -> bool:
        """Return whether nothing is pending, so that the connection can be replaced now."""

    def on_connected(self) -> None:
        """Send the first events of a new connection."""

    def on_server_event(self, event: Mapping[str, Any]) -> None:
        """Handle a received event."""

    def on_disconnected(self) -> None:
        """Handle the end of a connection, planned or not."""

    def on_renewed(self, reason: str) -> None:
        """Handle the end of a connection that another one follows. `reason`: see `ConnectionEnd`."""

    def on_given_up(self, error: RealtimeError) -> None:
        """Handle that the session is given up, or given up for good."""


class RealtimeConnector:
    """The connections of one session, one after the other. `session_s`: see `RealtimeLimits`. `availability`
    counts what fails and when to give up.

    *Ownership*: `run` is the session's task; call everything on its event loop. *Cancellation* of `run` closes the
    connection.
    """

    def __init__(
        self,
        session: ConnectedSession,
        settings: RealtimeSettings,
        *,
        api_key: str,
        clock: AsyncClock,
        session_s: float,
        availability: Availability,
        errors: ErrorMessages,
    ) -> None:
        self._session = session
        self._settings = settings
        self._api_key = api_key
        self._clock = clock
        self._session_s = session_s
        self._availability = availability
        self._errors = errors
        self._connection: RealtimeConnection | None = None
        # How often too much waited to be sent.
        self._overflows = 0
        # Set while a connection is open whose configuration the server has accepted.
        self.ready = asyncio.Event()

    @property
    def connected(self) -> bool:
        """Return whether a connection is open."""
        return self._connection is not None

    @property
    def queue(self) -> QueueFigures:
        """Return how many events wait to be sent."""
        waiting = 0 if self._connection is None else self._connection.waiting
        return QueueFigures("realtime_events", waiting, OUTGOING_EVENTS, {"full": self._overflows})

    def send(self, events: Sequence[ClientEvent]) -> None:
        """Send events over the open connection, if any. If too many wait, it is stuck and ends."""
        if self._connection is not None and not self._connection.send(events):
            self._overflows += 1
            self.end("lost", self._errors.too_slow())

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` until the open connection ends."""
        assert self._connection is not None, "only what a connection brings is worked on"
        self._connection.start(work, name)

    def end(self, reason: str, error: RealtimeError | None = None) -> None:
        """End the open connection, if any. `reason`: see `ConnectionEnd`."""
        if self._connection is not None:
            self._connection.end(reason, error)

    async def run(self) -> None:
        """Keep the session connected. After giving up, try again later. Return when a retry cannot help."""
        client = open_client(self._settings.base_url, self._api_key, timeout_s=CONNECT_TIMEOUT_S)
        at_once = False
        try:
            while not self._availability.ended:
                if self._availability.given_up is not None and not at_once:
                    await self._clock.sleep(self._availability.retry_delay_s)
                at_once = await self._live_once(client)
        finally:
            self.ready.clear()
            await client.close()

    async def _live_once(self, client: openai.AsyncOpenAI) -> bool:
        """Run one connection to its end and handle the reason. Returns whether we ended it to open another at once."""
        given_up, opened_at = self._availability.given_up, self._clock.monotonic()
        # A connection after the session was given up is a trial, for as long as it lasts.
        self._availability.on_trial = given_up is not None
        end = await self._connected(client)
        self._availability.on_trial = False
        self._session.on_disconnected()
        if end.reason not in PLANNED:
            error = end.error or self._errors.ended()
            if given_up is not None and self._availability.given_up is given_up:
                self._still_gone(error)
            else:
                log.warning("realtime_connection_ended", reason=end.reason, problem=end.error)
                held = error.retryable and self._clock.monotonic() - opened_at >= PROVEN_S
                await self._connection_failed(error, held=held)
        if self._availability.given_up is None:
            self._session.on_renewed(end.reason)
        return end.reason in PLANNED

    async def _connected(self, client: openai.AsyncOpenAI) -> ConnectionEnd:
        """Run one connection to its end, and return why it ended."""
        try:
            socket = await dial(client, model=self._settings.model, within_s=CONNECT_TIMEOUT_S)
        except Exception as error:  # noqa: BLE001 - every kind is translated
            return ConnectionEnd("lost", self._errors.translate(error))
        connection = self._connection = RealtimeConnection(socket, translate=self._errors.translate)
        log.info("realtime_session_opened", model=self._settings.model)
        beside = [("realtime-renewal", partial(self._renew, connection))]
        if self._availability.on_trial:
            beside.append(("realtime-trial", partial(self._end_unless_ready, connection)))
        try:
            self._session.on_connected()
            return await connection.hold(on_event=self._session.on_server_event, beside=beside)
        finally:
            self._connection = None
            self.ready.clear()
            await connection.close()

    async def _renew(self, connection: RealtimeConnection) -> None:
        """End the connection before the server does: when the session is idle, or after a grace period."""
        await self._clock.sleep(self._session_s)
        deadline = self._clock.monotonic() + RENEWAL_PATIENCE_S
        while not self._session.idle and self._clock.monotonic() < deadline:
            await self._clock.sleep(IDLE_LOOK_S)
        connection.end("expiring")

    async def _end_unless_ready(self, connection: RealtimeConnection) -> None:
        """End the connection if it does not become ready in time."""
        await self._clock.sleep(CONNECT_TIMEOUT_S)
        if not self.ready.is_set():
            connection.end("lost", self._errors.translate(TimeoutError()))

    async def _connection_failed(self, error: RealtimeError, *, held: bool) -> None:
        """Count a lost connection, unless it had lasted long enough (`held`), and wait before the next attempt."""
        if self._availability.given_up is not None:
            return
        if held:
            self._availability.record_success(RealtimeWork.CONNECTION)
        elif self._availability.record_failure(RealtimeWork.CONNECTION, error):
            self._session.on_given_up(error)
        elif backoff_s := self._availability.backoff_s:
            await self._clock.sleep(backoff_s)

    def _still_gone(self, error: RealtimeError) -> None:
        """Log a failed retry. Give up for good if a retry can no longer help."""
        log.info("realtime_still_gone", problem=error)
        if not error.retryable:
            self._availability.given_up = error
            self._session.on_given_up(error)
