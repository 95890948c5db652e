"""The only file that uses private parts of discord.py (2.7.1, pinned), in order to receive sound.

discord.py does the voice handshake, the end-to-end group and sending. This file overrides its connection state, voice
websocket and socket reader where necessary: to receive datagrams, to survive bad messages of the voice server, and to
fix three races. It does not interpret packets. `tests/.../test_private.py` fails when the parts used here change;
docs/decisions/0002-discord-private-parts.md gives the reasons for using them.
"""

from __future__ import annotations

import asyncio
import select
import struct
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import davey
import discord
import structlog
from discord.gateway import DiscordVoiceWebSocket
from discord.utils import MISSING
from discord.voice_state import ConnectionFlowState, SocketReader, VoiceConnectionState

from voice.audio import DISCORD_FRAME_SAMPLES
from voice.transport import receive_buffer
from voice.transport.close_codes import RESUMABLE, SERVER_CRASHED, fatal_reason
from voice.transport.rtp import is_discovery_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from discord.abc import Connectable

    from voice.transport.metronome import Metronome, MetronomeLine
    from voice.transport.receiver import Receiver

_log = structlog.get_logger()

# A datagram is at most one Ethernet frame; discord.py reads the same size.
_DATAGRAM_BYTES = 2048
# Most datagrams read per wake-up before the receiver is flushed: 64 take about 10 ms to decode.
_DRAIN = 64
_NO_SOCKET_PAUSE_S = 0.02
# If the socket is replaced during a poll, the reader notices after this time at most.
_LONGEST_POLL_S = 0.2
# The reader asks this often what the system dropped.
_OVERFLOW_CHECK_S = 1.0

# UDP may lose the request or the answer of IP discovery.
_DISCOVERY_TRIES = 5
_DISCOVERY_WAIT_S = 1.0

# While the bot rejoins the group the server still sends messages of the old one. It waits two seconds for the slowest
# member.
_REJOIN_S = 3.0

# What a malformed message of the voice server can raise in discord.py or davey. OSError: the websocket closes while the
# answer is sent, which the next read reports properly.
_BAD_MESSAGE = (
    ValueError, KeyError, IndexError, TypeError, AttributeError, RuntimeError, OverflowError, struct.error, OSError,
)  # fmt: skip

# A key change is executed when the slowest member is ready, within two seconds. One still pending after this time was
# cancelled.
_TRANSITION_S = 10.0

# A resumption takes one round trip; after this time a new connection is quicker.
_RESUME_S = 5.0


class PollingReader(SocketReader):
    """Reads the UDP socket with `poll` until it is empty, and flushes the receiver when nothing comes.

    discord.py's reader uses `select`, which receives nothing and spins when the socket's number is 1024 or more, and it
    reads only one datagram per wake-up.
    """

    def __init__(self, state: ReceivingState) -> None:
        super().__init__(state)
        self._receiving = state
        # Starts paused, before the thread runs, until `resume`. discord.py's reader pauses itself once its thread runs,
        # and on a busy machine this undoes an earlier `resume` or `stop`.
        self._idle_paused = False
        self._overflow: tuple[object, int] = (None, 0)
        self._overflow_checked_at = 0.0

    def run(self) -> None:
        try:
            self._do_run()
        finally:
            self.stop()
            self._callbacks.clear()

    def _do_run(self) -> None:
        wait_s = 0.0
        while not self._end.is_set():
            if not self._running.is_set():
                self._running.wait()
                continue
            sock = self.state.socket
            try:
                poll = select.poll()
                poll.register(sock.fileno(), select.POLLIN)
                readable = bool(poll.poll(min(wait_s, _LONGEST_POLL_S) * 1000))
            except (OSError, ValueError, AttributeError, TypeError):
                # Between two connections the socket is missing or closed.
                time.sleep(_NO_SOCKET_PAUSE_S)
                continue
            if readable:
                self._drain(sock)
            self._count_overflow(sock)
            wait_s = self._flush()

    def _count_overflow(self, sock: Any) -> None:
        """Report, once a second, how many datagrams the system dropped since the last time."""
        now = time.monotonic()
        if now < self._overflow_checked_at + _OVERFLOW_CHECK_S:
            return
        self._overflow_checked_at = now
        before = self._overflow[1] if self._overflow[0] is sock else 0
        self._overflow = sock, max(before, receive_buffer.dropped(sock))
        if self._overflow[1] > before:
            self._receiving.receiver.overflowed(self._overflow[1] - before)

    def _drain(self, sock: Any) -> None:
        for _ in range(_DRAIN):
            try:
                datagram = sock.recv(_DATAGRAM_BYTES)
            except OSError:
                # The socket is empty, or had an ICMP error, which poll reports as readable and this call has cleared.
                return
            for callback in list(self._callbacks):
                try:
                    callback(datagram)
                except Exception:  # noqa: BLE001 - one listener's fault must not deafen the others
                    _log.exception("datagram_listener_failed")

    def _flush(self) -> float:
        try:
            return self._receiving.receiver.flush()
        except Exception:  # noqa: BLE001 - the reader thread must outlive whatever one packet does
            _log.exception("receiver_flush_failed")
            return _NO_SOCKET_PAUSE_S


# The largest numbers in a key change: versions and transitions have 16 bits, epochs 64 (DAVE's protocol.md).
_LARGEST = {"protocol_version": 2**16 - 1, "transition_id": 2**16 - 1, "epoch": 2**64 - 1}


class TolerantWebSocket(DiscordVoiceWebSocket):
    """The voice websocket. A bad message is dropped; the task that reads the messages goes on."""

    _connection: ReceivingState
    resumed = False

    async def poll_event(self) -> None:
        """Read one message. Drops a message that is not JSON; marks a resumable disconnection as resumable."""
        try:
            await super().poll_event()
        except ValueError as error:
            _log.warning("voice_message_refused", op=None, error_class=type(error).__name__)
        except discord.ConnectionClosed as closed:
            if closed.code in RESUMABLE and self._connection.is_connected():
                # discord.py resumes only after 4015; after all other codes it leaves the channel and joins again.
                closed.code = SERVER_CRASHED
            raise

    async def received_message(self, msg: dict[str, Any]) -> None:
        """Handle a JSON message. Unlike discord.py, lets a session that started unencrypted switch to encryption."""
        op = msg.get("op") if isinstance(msg, dict) else None
        if op == self.READY:
            # Do this before a packet of the new connection can come, because the server assigns all SSRCs anew.
            self._connection.begin_anew()
        if op == self.RESUMED:
            self.resumed = True
        if op in (self.READY, self.SESSION_DESCRIPTION):
            # There is no connection without these two messages, so an error in them must fail it.
            await super().received_message(msg)
            return
        try:
            self._check_numbers(msg)
            await self._start_encryption(msg)
            await super().received_message(msg)
        except _BAD_MESSAGE as error:
            _log.warning("voice_message_refused", op=op, error_class=type(error).__name__)

    async def received_binary_message(self, msg: bytes) -> None:
        """Handle an MLS message. After one that cannot be processed, rejoin the group, as the protocol asks."""
        try:
            session = self._connection.dave_session
            if session is not None and len(msg) > 3 and msg[2] == self.MLS_PROPOSALS:
                await self._process_proposals(session, msg)
            else:
                await super().received_binary_message(msg)
        except _BAD_MESSAGE as error:
            _log.warning("mls_message_refused", op=msg[2] if len(msg) > 2 else None, error_class=type(error).__name__)
            await self._connection.recover_group()

    def _check_numbers(self, msg: dict[str, Any]) -> None:
        """Raise ValueError for a key change whose version or id is no number: discord.py would keep it as it came."""
        if msg.get("op") not in (self.DAVE_PREPARE_TRANSITION, self.DAVE_EXECUTE_TRANSITION, self.DAVE_PREPARE_EPOCH):
            return
        for name, largest in _LARGEST.items():
            number = msg["d"].get(name, 0)
            if type(number) is not int or not 0 <= number <= largest:
                raise ValueError(f"{name} is no number")

    async def _start_encryption(self, msg: dict[str, Any]) -> None:
        """Create the session for op 24. discord.py handles op 24 only if a session exists already."""
        state = self._connection
        if msg.get("op") == self.DAVE_PREPARE_EPOCH and state.dave_session is None and msg["d"]["epoch"] == 1:
            state.dave_protocol_version = msg["d"]["protocol_version"]
            await state.reinit_dave_session()

    async def _process_proposals(self, session: davey.DaveSession, msg: bytes) -> None:
        """Process op 27 as discord.py does, but refuse to add people whom the gateway did not announce."""
        state = self._connection
        self.seq_ack = struct.unpack_from(">H", msg, 0)[0]
        kind = davey.ProposalsOperationType.append if msg[3] == 0 else davey.ProposalsOperationType.revoke
        expected = [*state.receiver.members, state.user.id]
        result = session.process_proposals(kind, msg[4:], expected)
        if isinstance(result, davey.CommitWelcome):
            await self.send_binary(self.MLS_COMMIT_WELCOME, result.commit + (result.welcome or b""))

    async def discover_ip(self) -> tuple[str, int]:
        """Return our external address and port, as the voice server sees them. Raises `TimeoutError`.

        discord.py asks once, and before it listens, so that a running reader consumes the answer. This method listens
        first and asks several times.
        """
        state = self._connection
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[bytes] = loop.create_future()

        def answer(datagram: bytes) -> None:
            if not answered.done():
                answered.set_result(datagram)

        def listen(datagram: bytes) -> None:
            if is_discovery_answer(datagram):
                loop.call_soon_threadsafe(answer, datagram)

        question = struct.pack(">HHI", 1, 70, state.ssrc) + bytes(66)
        state.add_socket_listener(listen)
        try:
            for _ in range(_DISCOVERY_TRIES):
                await loop.sock_sendall(state.socket, question)
                done, _pending = await asyncio.wait([answered], timeout=_DISCOVERY_WAIT_S)
                if done:
                    break
            else:
                raise TimeoutError("The voice server did not answer over UDP.")
        finally:
            state.remove_socket_listener(listen)
        found = answered.result()
        return found[8 : found.index(0, 8)].decode("ascii", "replace"), struct.unpack_from(">H", found, 72)[0]


class PendingTransitions(dict[int, int]):
    """Announced key changes (DAVE transitions) that are not executed yet: id to protocol version.

    The voice server may cancel one silently, and discord.py removes only executed ones.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._announced: dict[int, float] = {}

    def __setitem__(self, transition_id: int, version: int) -> None:
        super().__setitem__(transition_id, version)
        announced = {known: at for known, at in self._announced.items() if known in self}
        self._announced = {**announced, transition_id: self._clock()}

    @property
    def under_way(self) -> bool:
        """Whether a transition is recent enough to be executed still."""
        now = self._clock()
        return any(now < self._announced[transition_id] + _TRANSITION_S for transition_id in self)


class ReceivingState(VoiceConnectionState):
    """The voice connection's state machine, with our websocket and reader, and with lost wake-ups fixed."""

    dave_pending_transitions: PendingTransitions

    def __init__(
        self,
        voice_client: ReceivingClient,
        *,
        receiver: Receiver,
        on_state: Callable[[bool], None],
        require_e2ee: bool = False,
    ) -> None:
        """`on_state` is called on the event loop whenever the connection comes up (True) or goes down (False).

        `require_e2ee`: refuse frames that are not end-to-end encrypted, in both directions.
        """
        self.receiver = receiver
        self.require_e2ee = require_e2ee
        self.removed = False
        self.close_code: int | None = None
        self._on_state = on_state
        self._waiters: set[asyncio.Future[None]] = set()
        self._rejoining_until = float("-inf")
        super().__init__(voice_client, hook=self._heard_of)
        self.dave_pending_transitions = PendingTransitions()
        _end_thread(self._socket_reader)
        self._socket_reader = PollingReader(self)
        self._socket_reader.start()
        self.add_socket_listener(self._datagram)

    def _create_socket(self) -> None:
        """Make the UDP socket with a receive buffer that many people who speak at once do not overflow."""
        super()._create_socket()
        size = receive_buffer.enlarge(self.socket)
        if size < receive_buffer.SMALL_BYTES:
            _log.warning("receive_buffer_small", granted_bytes=size, wanted_bytes=receive_buffer.WANTED_BYTES)

    # Messages that arrive.

    def begin_anew(self) -> None:
        """Reset the state that belonged to the previous connection."""
        self._rejoining_until = float("-inf")
        self.dave_pending_transitions.clear()
        self.dave_downgraded = False
        self.receiver.reset()

    def _datagram(self, datagram: bytes) -> None:
        self.receiver.datagram(datagram, self)

    async def _heard_of(self, ws: DiscordVoiceWebSocket, msg: dict[str, Any]) -> None:
        """Pass the voice gateway's messages about people to the receiver."""
        data = msg.get("d") or {}
        match msg.get("op"):
            case DiscordVoiceWebSocket.CLIENTS_CONNECT:
                self.receiver.joined({int(user_id) for user_id in data["user_ids"]} - {self.user.id})
            case DiscordVoiceWebSocket.SPEAKING if data.get("user_id") is not None:
                self.receiver.speaks(int(data["ssrc"]), int(data["user_id"]), announced=bool(data.get("speaking")))
            case DiscordVoiceWebSocket.CLIENT_CONNECT if data.get("user_id") is not None and data.get("audio_ssrc"):
                # Op 12 announces video, and names the SSRC of the audio too.
                self.receiver.speaks(int(data["audio_ssrc"]), int(data["user_id"]), announced=False)
            case DiscordVoiceWebSocket.CLIENT_DISCONNECT:
                self.receiver.left(int(data["user_id"]))
            case DiscordVoiceWebSocket.DAVE_EXECUTE_TRANSITION:
                self.receiver.rekeyed()

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
            self._on_state(is_up)

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
        """Handle Discord's update of our voice state; note when somebody else removed or moved the bot.

        discord.py never clears its "disconnected" event. After one reconnection it would therefore treat the next
        change of voice server (4014) as the end.
        """
        if data["channel_id"] is not None:
            self._disconnected.clear()
            if int(data["channel_id"]) != self.voice_client.channel.id:
                self.removed = True
                if self.is_connected():
                    # discord.py would follow, and the bot would hear people who were not told about it.
                    return
        elif not self._expecting_disconnect:
            if self.session_id is None:
                # We have not joined yet, so this is a late message about the previous client.
                return
            self.removed = True
        await super().voice_state_update(data)

    async def _inner_connect(self, reconnect: bool, self_deaf: bool, self_mute: bool, resume: bool) -> None:
        """Resume if `resume` is set, and connect if that fails.

        discord.py asks the main gateway for the channel even to resume. Discord does not answer this, so discord.py
        waits until its timeout and gives up the connection.
        """
        if resume:
            try:
                async with asyncio.timeout(_RESUME_S):
                    await self._resume()
                return
            except (discord.ConnectionClosed, aiohttp.ClientError, OSError) as error:
                _log.info("voice_resume_refused", error_class=type(error).__name__)
            await self.disconnect(cleanup=False)
        await super()._inner_connect(reconnect, self_deaf, self_mute, resume=False)

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

    async def recover_group(self) -> None:
        """Rejoin the end-to-end group, because its keys no longer fit or a message could not be processed."""
        try:
            await self._recover_from_invalid_commit(0)
        except OSError as error:
            _log.warning("group_recovery_not_sent", error_class=type(error).__name__)

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

    # State that the link reads.

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


class ReceivingClient(discord.VoiceClient):
    """discord.py's voice client that also receives. Created by `channel.connect(cls=…)`."""

    # Discord offers other modes only to old clients, and the receiver opens only this one.
    supported_modes = ("aead_xchacha20_poly1305_rtpsize",)
    _connection: ReceivingState

    def __init__(
        self,
        client: discord.Client,
        channel: Connectable,
        *,
        receiver: Receiver,
        on_state: Callable[[bool], None],
        metronome: Metronome | None = None,
        require_e2ee: bool = False,
    ) -> None:
        """`receiver` gets every datagram and the gateway's messages about people; `metronome` sends our datagrams.

        `require_e2ee`: as in `ReceivingState`.
        """
        self._require_e2ee = require_e2ee
        self._receiver = receiver
        self._on_state = on_state
        self._metronome = metronome
        self._line: MetronomeLine | None = None
        super().__init__(client, channel)

    def create_connection_state(self) -> ReceivingState:
        return ReceivingState(self, receiver=self._receiver, on_state=self._on_state, require_e2ee=self._require_e2ee)

    @property
    def connection(self) -> ReceivingState:
        return self._connection

    @property
    def forgotten(self) -> bool:
        """Whether discord.py dropped this client when it started a new main session that has the server again."""
        guild = self.client.get_guild(self.guild.id)
        return self not in self.client.voice_clients and guild is not None and not guild.unavailable

    @property
    def can_send(self) -> bool:
        """See `PacketSender.can_send`. Any thread may ask."""
        state = self._connection
        plain = not state.end_to_end and not state.require_e2ee
        return state.is_connected() and (plain or state.can_encrypt)

    @property
    def keys(self) -> object:
        """See `PacketSender.keys`. Any thread may ask."""
        session = self._connection.dave_session
        # A new group may have the same epoch number, so the session is part of the value.
        return self._connection.can_encrypt, id(session), None if session is None else session.epoch

    def seal(self, packet: bytes) -> bytes:
        """See `PacketSender.seal`. Call it from one thread only."""
        self.checked_add("sequence", 1, 65535)
        datagram: bytes = self._get_voice_packet(packet)
        self.checked_add("timestamp", DISCORD_FRAME_SAMPLES, 4294967295)
        return datagram

    @property
    def keeps_time(self) -> bool:
        return self._metronome is not None and self._metronome.alive

    def send(self, datagram: bytes, *, at: float) -> None:
        """See `PacketSender.send`. A datagram that the network refuses is lost."""
        sock = self._connection.socket
        if sock is MISSING or sock.fileno() < 0:
            return
        if self._metronome is not None and self._metronome.alive:
            line = self._line
            if line is None or line.sock is not sock:
                # Each connection has its own socket.
                self._close_line()
                line = self._line = self._metronome.line(sock)
            line.send(datagram, at=at)
            return
        try:
            self._connection.send_packet(datagram)
        except OSError as error:
            _log.debug("datagram_not_sent", error_class=type(error).__name__)

    def _close_line(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def set_speaking(self, speaking: bool) -> None:
        """Announce whether the bot is speaking (op 5). Any thread may call; returns at once."""
        state = discord.SpeakingState.voice if speaking else discord.SpeakingState.none
        asyncio.run_coroutine_threadsafe(self._speak(state), self.loop)

    async def _speak(self, state: discord.SpeakingState) -> None:
        try:
            await self.ws.speak(state)
        except (OSError, AttributeError) as error:
            # The websocket is closing or missing. Speaking is announced again after the reconnection.
            _log.debug("speaking_not_told", error_class=type(error).__name__)

    async def retire(self, *, timeout_s: float) -> None:
        """Leave the channel for good and end every task and thread of this client.

        *Cancellation*: stops waiting; the client is still unregistered.
        """
        state = self._connection
        try:
            # End the tasks first: an orphaned one would take the next client out of the channel.
            for task in (state._runner, state._connector):
                if task is not None:
                    await _end_task(task)
            # discord.py sends no updates to a client that it dropped with a new main session.
            is_told = state.state is not ConnectionFlowState.disconnected and self in self.client.voice_clients
            async with asyncio.timeout(timeout_s):
                # Don't use discord.py's own wait, which swallows cancellation. Clean up later, because an unregistered
                # client gets no updates.
                await state.disconnect(force=True, cleanup=False, wait=False)
                if is_told:
                    # A late message about our leaving would confuse the next client.
                    await state._disconnected.wait()
        except TimeoutError:
            _log.warning("leaving_voice_timed_out", timeout_s=timeout_s)
        finally:
            self.cleanup()
            state._socket_reader.stop()
            self._close_line()
        await asyncio.to_thread(state._socket_reader.join, 1.0)


async def _end_task(task: asyncio.Task[Any]) -> None:
    """Cancel `task` until it ends: Python 3.11's `wait_for` swallows a cancellation that comes with a message."""
    for _ in range(50):
        if task.done():
            if not task.cancelled():
                # Mark the exception as retrieved; discord.py has logged it.
                task.exception()
            return
        task.cancel()
        await asyncio.wait([task], timeout=0.1)


def _end_thread(reader: SocketReader) -> None:
    """End discord.py's reader, which its constructor started. Repeats `stop`, because one before the thread runs is
    lost.
    """
    for _ in range(100):
        reader.stop()
        reader.join(0.01)
        if not reader.is_alive():
            return
