"""The state machine of one voice connection, with our websocket and socket reader."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import discord
import structlog
from discord.utils import MISSING
from discord.voice_state import ConnectionFlowState, VoiceConnectionState

from voice.errors import RemovedFromChannelError, TakenOverError, VoiceConnectionError
from voice.transport import receive_buffer
from voice.transport.keepalive import KEEPALIVE_BYTES, Keepalive
from voice.transport.private.attempts import FAILURES, Attempts
from voice.transport.private.pending_transitions import PendingTransitions
from voice.transport.private.socket_reader import PollingReader, end_thread
from voice.transport.private.websocket import TolerantWebSocket, forward_people
from voice.transport.reconnection import RESUMABLE, SENT_AWAY, fatal_reason

if TYPE_CHECKING:
    from discord.gateway import DiscordVoiceWebSocket

    from voice.transport.private.client import ReceivingClient
    from voice.transport.receiver import Receiver

_log = structlog.get_logger()

# While the bot rejoins the group the server sends messages of the old one. It waits two seconds for the slowest member.
_REJOIN_S = 3.0
_REJOIN_GROUP_TIMEOUT_S = 5.0

# A resumption takes one round trip; after this time a new connection is quicker.
_RESUME_S = 3.0
# The main gateway's word about a voice connection that was closed comes within one round trip of the closing.
WORD_S = 1.5
_HANDSHAKE_S = 8.0  # with another voice server


class ReceivingState(VoiceConnectionState):
    """The voice connection's state machine, with our websocket and reader, and with lost wake-ups fixed."""

    dave_pending_transitions: PendingTransitions
    voice_client: ReceivingClient

    def __init__(
        self,
        voice_client: ReceivingClient,
        *,
        receiver: Receiver,
        require_e2ee: bool = False,
    ) -> None:
        """`voice_client` is told on the event loop when the connection comes up, and when it goes down or is over.

        `require_e2ee`: refuse frames that are not end-to-end encrypted, in both directions.
        """
        self.receiver = receiver
        self.keepalive = Keepalive()
        # The voice server's credential for MLS (op 25), which every group needs.
        self.external_sender: bytes | None = None
        self.require_e2ee = require_e2ee
        # Why the bot must not come back: somebody removed it, or another process has its place.
        self.taken_out: VoiceConnectionError | None = None
        self.deafened = False  # by somebody on the server: Discord sends the bot no sound
        # The connection has ended, and only a new client can replace it.
        self.over = False
        self.close_code: int | None = None
        self._waiters: set[asyncio.Future[None]] = set()
        self._attempts = Attempts()
        self._rejoining_until = float("-inf")
        super().__init__(voice_client, hook=self._heard_of)
        self.dave_pending_transitions = PendingTransitions()
        end_thread(self._socket_reader)
        self._socket_reader = PollingReader(self, receiver)
        self._socket_reader.start()
        self.add_socket_listener(self._datagram)

    def _create_socket(self) -> None:
        """Make the UDP socket with a receive buffer that many people who speak at once do not overflow."""
        if self.socket is not MISSING:
            self.socket.close()
        super()._create_socket()
        receive_buffer.prepare(self.socket)

    # Messages that arrive.

    def begin_anew(self) -> None:
        """Reset the state that belonged to the previous connection."""
        self._rejoining_until = float("-inf")
        self.keepalive = Keepalive()
        self.external_sender = None
        self.dave_pending_transitions.clear()
        self.dave_downgraded = False
        self.receiver.reset()

    def _datagram(self, datagram: bytes) -> None:
        if len(datagram) == KEEPALIVE_BYTES and self.keepalive.echoed(datagram, time.monotonic()):
            return
        self.receiver.datagram(datagram, self)

    async def _heard_of(self, ws: DiscordVoiceWebSocket, msg: dict[str, Any]) -> None:
        """Pass the voice gateway's messages about people to the receiver."""
        replayed = isinstance(ws, TolerantWebSocket) and time.monotonic() < ws.replays_until
        forward_people(msg, self.receiver, own_id=self.user.id, replayed=replayed)

    # Behaviour that differs from discord.py's.

    @property
    def state(self) -> ConnectionFlowState:
        return self._state

    @state.setter
    def state(self, state: ConnectionFlowState) -> None:
        was_up = self._state is ConnectionFlowState.connected
        VoiceConnectionState.state.fset(self, state)  # type: ignore[attr-defined]
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
        is_up = state is ConnectionFlowState.connected
        if was_up and not is_up:
            self.receiver.pause()
        if was_up is not is_up:
            self.voice_client.state_is(is_up)

    async def _wait_for_state(
        self,
        state: ConnectionFlowState,
        *other_states: ConnectionFlowState,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
    ) -> None:
        """Wait for a state without missing one.

        discord.py sets and clears its event at once, and its waiter starts a tick later. It therefore misses a server
        update that comes three ticks after the state update. Here the waiter registers before anything can happen.
        """
        async with asyncio.timeout(timeout):
            while self.state not in (state, *other_states):
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.add(waiter)
                try:
                    await waiter
                finally:
                    self._waiters.discard(waiter)

    async def _voice_connect(self, *, self_deaf: bool = False, self_mute: bool = False) -> None:
        """Ask Discord to join the channel. Unlike discord.py, expect the answer before asking."""
        if self.state is ConnectionFlowState.disconnected:
            self.state = ConnectionFlowState.set_guild_voice_state
        await super()._voice_connect(self_deaf=self_deaf, self_mute=self_mute)

    async def voice_state_update(self, data: Any) -> None:
        """Handle Discord's update of our voice state; note when somebody removed or moved the bot, or another process
        of it has come into the channel.

        discord.py never clears its "disconnected" event. After one reconnection it would therefore treat the next
        change of voice server (4014) as the end.
        """
        self.deafened = bool(data.get("deaf"))
        if data["channel_id"] is not None:
            self._disconnected.clear()
            if int(data["channel_id"]) != self.voice_client.channel.id:
                # discord.py would follow, and the bot would hear people who were not told about it.
                self._removed()
                return
            if self._runner is not None and data["session_id"] != self.session_id:
                # discord.py would use the other session, and each process would take it from the other for ever.
                self.taken_out = TakenOverError()
                self.state = ConnectionFlowState.disconnected
                return
        elif not self._expecting_disconnect:
            if self.session_id is None:
                # We have not joined yet, so this is a late message about the previous client.
                return
            self._removed()
        await super().voice_state_update(data)

    async def voice_server_update(self, data: Any) -> None:
        """Handle the main gateway's word of a voice server.

        If the polling task is replacing its websocket, it goes on at a server that is named now. discord.py would let
        another task ask for the channel that the bot is in: Discord names one more server, and so on, or is silent.
        """
        if not self._is_replacing or not self._is_another_server(data):
            await super().voice_server_update(data)
            return
        self.state = ConnectionFlowState.got_voice_state_update
        await super().voice_server_update(data)
        if self._attempts.under_way:
            self._attempts.supersede()

    @property
    def _is_replacing(self) -> bool:
        """Whether the polling task replaces its websocket, or is about to: a server may be named just before."""
        if self.state is ConnectionFlowState.disconnected:
            return False
        is_polling = self._runner is not None and not self._runner.done()
        return self._attempts.under_way or (is_polling and not self.is_connected())

    def _is_another_server(self, data: Any) -> bool:
        """Return whether a server update names a server, and another one than the last. Without an endpoint one is
        still to be found.
        """
        token, endpoint = data["token"], data.get("endpoint")
        return bool(token and endpoint) and (token, endpoint.removeprefix("wss://")) != (self.token, self.endpoint)

    def _removed(self) -> None:
        """Note that somebody took the bot out of the channel. An attempt to connect that is under way ends at once."""
        self.taken_out = RemovedFromChannelError()
        if self._connector is not None:
            self._connector.cancel()

    async def _inner_connect(self, reconnect: bool, self_deaf: bool, self_mute: bool, resume: bool) -> None:
        """Join the channel and do the handshake, once.

        discord.py tries five times, with pauses of its own; here the connection decides about the next attempt.
        """
        await self._voice_connect(self_deaf=self_deaf, self_mute=self_mute)
        await self._wait_for_state(ConnectionFlowState.got_both_voice_updates)
        self.ws = await self._connect_websocket(resume=False)
        await self._handshake_websocket()

    async def _poll_voice_ws(self, reconnect: bool) -> None:
        """Read the voice websocket until the connection is over; then the connection makes a new one.

        discord.py makes the new connection in this task, after pauses that grow and are never reset, and tells the loss
        after the pause. Here the loss is told at once.
        """
        while True:
            try:
                await self.ws.poll_event()
            except asyncio.CancelledError:
                return
            except (discord.ConnectionClosed, TimeoutError) as error:
                self.close_code = error.code if isinstance(error, discord.ConnectionClosed) else None
                _log.info("voice_websocket_closed", close_code=self.close_code)
                try:
                    goes_on = await self._goes_on(self.close_code)
                except FAILURES as failed:
                    _log.info("voice_websocket_not_replaced", error_class=type(failed).__name__)
                    goes_on = False
                if not goes_on:
                    self._end()
                    return

    async def _goes_on(self, code: int | None) -> bool:
        """Replace a websocket that was closed, or went silent (`code` is None). Returns whether that was possible.

        Raises `FAILURES` if it was not.
        """
        if self.state is ConnectionFlowState.disconnected:
            return False
        if code in SENT_AWAY:
            return await self._follow()
        if code is None or code in RESUMABLE:
            self.state = ConnectionFlowState.websocket_connected
            await self._replace_websocket(resume=True)
            return True
        return False

    async def _follow(self) -> bool:
        """Go on at the voice server that the main gateway names. Returns False if it names none."""
        if self.is_connected():
            # From here a server update is the first half of a new connection.
            self.state = ConnectionFlowState.got_voice_state_update
        try:
            await self._wait_for_state(
                ConnectionFlowState.got_voice_server_update,
                ConnectionFlowState.got_both_voice_updates,
                ConnectionFlowState.disconnected,
                timeout=WORD_S,
            )
        except TimeoutError:
            return False
        if self.state is ConnectionFlowState.disconnected:
            return False
        await self._replace_websocket(resume=False)
        return True

    async def _replace_websocket(self, *, resume: bool) -> None:
        """Resume the session, or begin one. If another server is named meanwhile, begin one there.

        Raises `FAILURES`.
        """
        while not await self._attempts.make(
            self._resume() if resume else self._identify(), within_s=_RESUME_S if resume else _HANDSHAKE_S
        ):
            resume = False

    async def _identify(self) -> None:
        """Begin a voice session on a new websocket (op 0)."""
        former = self.ws
        try:
            self.ws = await self._connect_websocket(resume=False)
            await self._handshake_websocket()
        finally:
            await former.close()

    def _end(self) -> None:
        """Note that this connection is over. The connection is told by the change of state."""
        self.over = True
        was_up = self.is_connected()
        self.state = ConnectionFlowState.disconnected
        if not was_up:
            self.voice_client.state_is(False)

    async def _resume(self) -> None:
        """Resume the voice session on a new websocket (op 7): keys, SSRCs, group and UDP socket stay."""
        broken = self.ws
        try:
            ws = await self._connect_websocket(resume=True)
        finally:
            # Ends its heartbeat thread.
            await broken.close()
        self.ws = ws
        while not ws.resumed:
            await ws.poll_event()
        self.state = ConnectionFlowState.connected

    async def _connect_websocket(self, resume: bool) -> TolerantWebSocket:
        seq_ack = -1 if self.ws is MISSING else self.ws.seq_ack
        ws = await TolerantWebSocket.from_connection_state(self, resume=resume, hook=self.hook, seq_ack=seq_ack)
        ws.replays_until = float("inf") if resume else float("-inf")
        self.state = ConnectionFlowState.websocket_connected
        return ws

    async def _recover_from_invalid_commit(self, transition_id: int) -> None:
        """Leave the group and ask to be added again (op 31).

        Asks only once: until the bot is added, messages of the old group go on failing.
        """
        now = time.monotonic()
        session = self.dave_session
        if now < self._rejoining_until and session is not None and not session.ready:
            return
        self._rejoining_until = now + _REJOIN_S
        await super()._recover_from_invalid_commit(transition_id)

    async def recover_group(self) -> bool:
        """Rejoin the end-to-end group, because its keys no longer fit or a message could not be processed.

        Returns whether that was possible. A websocket that takes nothing for `_REJOIN_GROUP_TIMEOUT_S`, or a group that
        davey cannot make, is logged; the watchdog makes a new connection if the group stays unusable.
        """
        try:
            async with asyncio.timeout(_REJOIN_GROUP_TIMEOUT_S):
                await self._recover_from_invalid_commit(0)
        except (OSError, ValueError, RuntimeError) as error:
            _log.warning("group_not_rejoined", error_class=type(error).__name__)
            return False
        return True

    async def _handshake_websocket(self) -> None:
        """Do discord.py's handshake, and keep the reason if the server refuses."""
        try:
            await super()._handshake_websocket()
        except discord.ConnectionClosed as closed:
            self.close_code = closed.code
            reason = fatal_reason(closed.code)
            if reason is not None:
                raise reason from closed
            raise

    def keep_path_open(self) -> bool:
        """Send a keepalive if one is due. Returns whether the way to and from the voice server is open."""
        now = time.monotonic()
        datagram = self.keepalive.due(now, received=self.receiver.counters().received)
        if datagram is not None:
            try:
                self.send_packet(datagram)
            except OSError as error:
                _log.debug("keepalive_not_sent", error_class=type(error).__name__)
        return not self.keepalive.dead(now)

    @property
    def round_trip_s(self) -> float | None:
        """How long the voice server takes to answer: to a keepalive over UDP, else to a heartbeat; None: not known."""
        heartbeat_s: float = self.ws.latency if self.ws is not MISSING else float("inf")
        over_udp_s = self.keepalive.round_trip_s
        return over_udp_s if over_udp_s is not None else heartbeat_s if heartbeat_s < float("inf") else None

    @property
    def runner_alive(self) -> bool:
        """Whether the task that reads the voice websocket, or the task that will start it, is running."""
        task = self._runner or self._connector
        return task is None or not task.done()

    @property
    def end_to_end(self) -> bool:
        """Whether the call is end-to-end encrypted."""
        return self.dave_protocol_version != 0

    @property
    def privacy_code(self) -> str:
        """The digits that everybody in an end-to-end encrypted call can compare; empty without encryption."""
        session = self.dave_session
        code = session.voice_privacy_code if self.end_to_end and session is not None and session.ready else None
        return " ".join(code[at : at + 5] for at in range(0, len(code), 5)) if code else ""

    @property
    def in_transition(self) -> bool:
        """Whether keys are changing, so that frames may fail to decrypt."""
        return self.dave_pending_transitions.under_way or time.monotonic() < self._rejoining_until
