"""The bot's connection to one voice channel: joins, receives, sends, and reconnects.

The connection owns the receiver, the sending thread, the connector with discord.py's voice client, and the task that
watches them. It decides when to connect anew and when to give up. Audio events go to `sink` in batches on the event
loop. Changes of the connection go to `on_event`.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Self, assert_never

import structlog

from voice.audio import LISTEN_RATE_HZ
from voice.cancellation import run_shielded
from voice.errors import RemovedFromChannelError, VoiceConnectionError
from voice.transport.connection_events import Connected, ConnectionEvent, Deaf, Lost, Recovering
from voice.transport.connector import NOT_ENCRYPTED, Connector
from voice.transport.counters import PacketCounters
from voice.transport.handover import Handover
from voice.transport.outgoing import FrameSource, Outgoing
from voice.transport.receiver import Receiver
from voice.transport.reconnection import SENT_AWAY, ReconnectPauses
from voice.transport.watchdog import NobodyHeard, RecoverGroup, SpeakerNotHeard, WatchdogFinding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from voice.queue_figures import QueueFigures
    from voice.transport.audio_events import AudioEvent
    from voice.transport.discord_gateway import DiscordMainGateway
    from voice.transport.paced_sender import PacedSender
    from voice.transport.private.client import ReceivingClient
    from voice.transport.speaker_streams import HeardSince

_log = structlog.get_logger()

# Seconds between two checks; a state change starts one at once.
_CHECK_S = 0.5
# Seconds that joining a voice channel may take, with all attempts.
CONNECT_TIMEOUT_S = 30.0
# For so long the connection counts as deaf after somebody was announced as speaking and nothing arrived. Who goes on
# speaking is announced again with each talkspurt; without another one, nobody misses anything.
UNHEARD_FOR_S = 60.0
# Seconds between two lines in the log about what became of the packets.
COUNT_EVERY_S = 600.0
# Seconds of reconnection attempts before the bot leaves the room for good.
GIVE_UP_AFTER_S = 300.0
_ENDED = VoiceConnectionError("The voice connection ended. I am connecting again.")


class DiscordVoiceConnection:
    """A connection to one voice channel: joins it on entering, and stays while the context lasts. Entered once; use it
    on the event loop.

    `down_since`: since when the connection is down, in monotonic seconds; None while it is up.

    *Cancellation*: leaves the channel, also if it comes while the bot is leaving. *Ownership*: it owns the voice
    client, its threads, and two tasks.
    """

    def __init__(
        self,
        gateway: DiscordMainGateway,
        *,
        sink: Callable[[Sequence[AudioEvent]], None],
        heard_since: HeardSince,
        on_event: Callable[[ConnectionEvent], None],
        rate_hz: int = LISTEN_RATE_HZ,
        paced_sender: PacedSender | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        give_up_after_s: float = GIVE_UP_AFTER_S,
        require_e2ee: bool = False,
    ) -> None:
        """`sink` and `on_event` are called on the event loop and must be quick. `heard_since` returns since when a
        person may be heard (monotonic seconds), or None if their packets must never be decrypted (people who opted
        out); those of bots never are. The reader thread calls it for each, so a change takes effect at once. `rate_hz`:
        of the sound that is heard, 16,000 or 48,000. `paced_sender` sends the bot's sound on time; without it the
        connection's own thread does. `require_e2ee`: without end-to-end encryption hear and send nothing, and leave.
        """
        self._gateway = gateway
        self._connect_timeout_s = connect_timeout_s
        self._give_up_after_s = give_up_after_s
        self._require_e2ee = require_e2ee
        self._was_end_to_end = False
        self._on_event = on_event
        self._handover = Handover(asyncio.get_running_loop(), sink, rate_hz=rate_hz)
        self._receiver = Receiver(
            deliver=self._handover,
            heard_since=lambda user_id: None if gateway.is_bot(user_id) else heard_since(user_id),
            rate_hz=rate_hz,
        )
        self._connector = Connector(
            gateway,
            receiver=self._receiver,
            on_state=self._state_is,
            paced_sender=paced_sender,
            timeout_s=connect_timeout_s,
            require_e2ee=require_e2ee,
        )
        self._outgoing: Outgoing | None = None
        self._state_changed = asyncio.Event()
        # For good, and why.
        self._lost: asyncio.Future[VoiceConnectionError] = asyncio.get_running_loop().create_future()
        self._pauses = ReconnectPauses()
        self._was_up = False
        self.down_since: float | None = None
        # When somebody spoke of whom nothing arrived, and how many packets had become sound by then.
        self._unheard: tuple[float, int] | None = None
        # What the log has about packets, and since when (monotonic seconds).
        self._counted = PacketCounters().as_dict()
        self._counted_at = time.monotonic()
        self._closing = False
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Join the channel. Raises `VoiceConnectionError` (and `OpusMissingError`) with a plain sentence;
        `RemovedFromChannelError` if somebody takes the bot out of the channel before it is connected.
        """
        try:
            await self._connect(until=time.monotonic() + self._connect_timeout_s)
        except BaseException:
            await self._end()
            raise
        self._keeper = asyncio.create_task(self._keep(), name=f"voice-connection-{self._gateway.channel.id}")
        self._keeper.add_done_callback(self._keeper_ended)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._end()

    @property
    def client(self) -> ReceivingClient | None:
        """Return the voice client of the present connection; None between two."""
        return self._connector.client

    @property
    def members(self) -> frozenset[int]:
        """The people in the voice connection without the bot; excluded people are included."""
        return self._receiver.members

    @property
    def connected(self) -> bool:
        return self.client is not None and self.client.is_connected()

    @property
    def end_to_end(self) -> bool:
        """Whether the call is end-to-end encrypted at the moment."""
        return self.client is not None and self.client.connection.end_to_end

    @property
    def privacy_code(self) -> str:
        """The digits that people compare to know that nobody listens in; empty while the call is not encrypted."""
        return "" if self.client is None else self.client.connection.privacy_code

    @property
    def unheard(self) -> bool:
        """Whether somebody was announced as speaking lately, and no sound has arrived from anybody since."""
        if self._unheard is None or time.monotonic() - self._unheard[0] >= UNHEARD_FOR_S:
            return False
        return self._receiver.counters().decoded == self._unheard[1]

    @property
    def removed(self) -> bool:
        """Whether the connection is lost because somebody removed the bot, or because the channel was deleted."""
        return self._lost.done() and isinstance(self._lost.result(), RemovedFromChannelError)

    @property
    def round_trip_s(self) -> float | None:
        """How long the voice server takes to answer, in seconds; None while it is not known."""
        client = self._connector.client
        return client.connection.round_trip_s if client is not None and client.is_connected() else None

    def counters(self) -> PacketCounters:
        """Return the packet counts since the connection was opened."""
        counters = self._receiver.counters()
        counters.overrun_frames = self._handover.overrun_frames
        return counters

    @property
    def queue(self) -> QueueFigures:
        """The received sound that waits for the event loop."""
        return self._handover.queue

    def play(self, source: FrameSource) -> None:
        """Send the frames of `source` until `stop` or the end of the connection, across reconnections. Replaces an
        earlier source.
        """
        if self._outgoing is not None:
            self._outgoing.stop()
        self._outgoing = Outgoing(source, self._connector, channel_bitrate_bps=self._gateway.channel.bitrate)
        self._outgoing.start()

    async def stop(self) -> None:
        """Stop sending. The source is not called again after this returns."""
        if self._outgoing is not None:
            outgoing, self._outgoing = self._outgoing, None
            outgoing.stop()
            await asyncio.to_thread(outgoing.join, 1.0)

    async def lost(self) -> VoiceConnectionError:
        """Wait until the connection is lost for good. Returns the reason."""
        return await asyncio.shield(self._lost)

    # Connecting and disconnecting.

    async def _connect(self, *, until: float) -> None:
        """Connect, with further attempts as long as there is time. Raises `VoiceConnectionError`."""
        while True:
            try:
                return await self._connector.connect()
            except VoiceConnectionError as error:
                pause_s = self._pauses.next_s()
                # Nobody is heard meanwhile.
                _log.warning("voice_connection_failed", problem=error, retry_in_s=pause_s)
                if self._closing or not error.retryable or time.monotonic() + pause_s >= until:
                    raise
                await asyncio.sleep(pause_s)

    def _state_is(self, up: bool) -> None:
        if up:
            self._pauses.connected(time.monotonic())
            self._emit(Connected(time.monotonic(), again=self._was_up))
            self._was_up = True
            self.down_since = None
        elif self.down_since is None:
            self.down_since = time.monotonic()
            self._pauses.lost(self.down_since)
            self._emit(
                Lost(
                    self.down_since,
                    VoiceConnectionError("The voice connection broke. I am connecting again."),
                    final=False,
                )
            )
        self._state_changed.set()

    async def _end(self) -> None:
        self._closing = True
        # Who is cancelled a second time would leave the bot standing in the channel.
        await run_shielded(self._close(), name=f"voice-connection-end-{self._gateway.channel.id}")

    async def _close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        await self.stop()
        await self._connector.retire()
        self._receiver.reset()
        # Pass the last sound to the sink before the connection is gone.
        self._handover.drain()
        self._log_packets()

    def _log_packets(self) -> None:
        """Log what became of the packets since the last such line."""
        now, self._counted_at = self.counters().as_dict(), time.monotonic()
        risen = {name: count - self._counted[name] for name, count in now.items() if count > self._counted[name]}
        self._counted = now
        if risen:
            _log.info("voice_packets_counted", round_trip_s=self.round_trip_s, **risen)

    # The task that watches the connection.

    async def _keep(self) -> None:
        """Act on the watchdog's findings until the connection is lost for good."""
        while not self._lost.done():
            try:
                async with asyncio.timeout(_CHECK_S):
                    await self._state_changed.wait()
            except TimeoutError:
                pass
            self._state_changed.clear()
            await self._check()

    async def _check(self) -> None:
        if time.monotonic() - self._counted_at >= COUNT_EVERY_S:
            self._log_packets()
        client = self._connector.client
        assert client is not None, "the connection has a client from open to close, or is lost for good"
        state = client.connection
        if state.taken_out is not None:
            await self._give_up(state.taken_out)
            return
        if client.is_connected() and await self._encryption_refused():
            return
        if self.down_since is not None and time.monotonic() - self.down_since >= self._give_up_after_s:
            await self._give_up(VoiceConnectionError("The voice connection broke, and I could not connect again."))
            return
        if self._gateway.forgotten:
            await self._reconnect()
            return
        if state.over:
            # Without the main gateway the bot can neither learn why nor join. In a new main session that has not shown
            # the server yet, the bot is in no channel, which says nothing of what people want.
            if self._gateway.is_open and self._gateway.attached:
                await self._replace(client)
            return
        if client.is_connected() and not state.keep_path_open():
            await self._reconnect(
                VoiceConnectionError("The voice server does not answer, so I am connecting to it again.")
            )
            return
        if not state.runner_alive:
            # discord.py's task that reads the voice websocket has ended without a word.
            await self._replace(client)
            return
        for finding in self._receiver.check(
            connected=client.is_connected(),
            in_transition=state.in_transition,
            deafened=state.deafened,
        ):
            if await self._replaced_for(finding, client):
                return

    async def _replaced_for(self, finding: WatchdogFinding, client: ReceivingClient) -> bool:
        """Act on what the watchdog found. Returns whether `client` was replaced, so that other findings are void."""
        match finding:
            case RecoverGroup(user_id, failures):
                _log.warning("group_recovered", user_id=user_id, failures=failures)
                self._emit(
                    Recovering(time.monotonic(), VoiceConnectionError("The keys of this encrypted call no longer fit."))
                )
                if not await client.connection.recover_group():
                    self._receiver.not_recovered(user_id)
            case SpeakerNotHeard(user_id):
                self._unheard = (time.monotonic(), self._receiver.counters().decoded)
                # A NAT that has forgotten us lets sound in again once a datagram has left.
                client.connection.keepalive.probe()
                _log.warning("speaker_not_heard", user_id=user_id, **self.counters().as_dict())
                self._emit(Deaf(time.monotonic(), user_id))
            case NobodyHeard():
                _log.warning("nobody_heard", **self.counters().as_dict())
                await self._reconnect(
                    VoiceConnectionError("I could hear nobody, so I am connecting to the voice channel again.")
                )
                return True
            case _:
                assert_never(finding)
        return False

    async def _encryption_refused(self) -> bool:
        """Log a change of the encryption, and give up if the call has none but must. Returns whether it gave up."""
        if self.end_to_end != self._was_end_to_end:
            level = _log.info if self.end_to_end else _log.warning
            level("call_encryption_changed", channel_id=self._gateway.channel.id, end_to_end=self.end_to_end)
            self._was_end_to_end = self.end_to_end
        refused = self._require_e2ee and not self.end_to_end
        if refused:
            await self._give_up(VoiceConnectionError(NOT_ENCRYPTED))
        return refused

    async def _replace(self, client: ReceivingClient) -> None:
        """Make a new connection in the place of one that is over, unless somebody has sent the bot away."""
        state = client.connection
        if state.close_code in SENT_AWAY and not await self._gateway.is_in_channel():
            await self._give_up(RemovedFromChannelError())
        else:
            await self._reconnect(close_code=state.close_code)

    async def _reconnect(self, reason: VoiceConnectionError = _ENDED, *, close_code: int | None = None) -> None:
        """Replace a voice client that has stopped for good, or hears nothing any more."""
        started = self.down_since = self.down_since or time.monotonic()
        self._pauses.lost(started)
        self._emit(Recovering(started, reason))
        await self._connector.retire()
        await asyncio.sleep(self._pauses.next_s(close_code=close_code))
        try:
            await self._connect(until=started + self._give_up_after_s)
        except VoiceConnectionError as error:
            await self._give_up(error)

    async def _give_up(self, reason: VoiceConnectionError) -> None:
        await self.stop()
        await self._connector.retire()
        self._lose(reason)

    def _lose(self, reason: VoiceConnectionError) -> None:
        self._lost.set_result(reason)
        self._emit(Lost(time.monotonic(), reason, final=True))

    def _keeper_ended(self, keeper: asyncio.Task[None]) -> None:
        cancelled = keeper.cancelled()
        error = None if cancelled else keeper.exception()
        if error is None and (self._closing or not cancelled):
            return
        _log.error("voice_connection_keeper_failed", cancelled=cancelled, exc_info=error)
        self._lose(
            VoiceConnectionError("I could not check my voice connection any more. Use /join again. The log says why.")
        )

    def _emit(self, event: ConnectionEvent) -> None:
        if self._closing:
            return
        _log.info("voice_connection_changed", channel_id=self._gateway.channel.id, change=type(event).__name__.lower())
        try:
            self._on_event(event)
        except Exception:  # noqa: BLE001 - whatever the listener does, the connection goes on
            _log.exception("connection_listener_failed")
