"""The one file that touches private parts of discord.py (2.7.1, pinned): its receive side is ours.

discord.py owns the voice handshake, the end-to-end group and sending. Its connection state, voice websocket and socket
reader are overridden here where necessary: to receive datagrams, to survive bad messages of the voice server, and to
fix three races. Nothing here interprets packets. `tests/.../test_private.py` fails when the touched parts change;
docs/decisions/0002-discord-private-parts.md says why we lean on them.
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
from voice.errors import LinkError
from voice.transport.close_codes import RESUMABLE, SERVER_CRASHED, fatal_reason
from voice.transport.rtp import is_discovery_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from discord.abc import Connectable

    from voice.transport.metronome import Metronome, MetronomeLine
    from voice.transport.receiver import Receiver

_log = structlog.get_logger()

# A datagram is at most one Ethernet frame; discord.py reads as much.
_DATAGRAM_BYTES = 2048
# Datagrams read at one wake-up before the clock is looked at: 64 take about 10 ms to decode.
_DRAIN = 64
_NO_SOCKET_PAUSE_S = 0.02
# A socket that is replaced while it is polled is noticed after this time at most.
_LONGEST_POLL_S = 0.2

# IP discovery: UDP may lose the question or the answer.
_DISCOVERY_TRIES = 5
_DISCOVERY_WAIT_S = 1.0

# While the group is made anew the server still sends what belongs to the old one. Two seconds is what it waits
# for the slowest member.
_REJOIN_S = 3.0

# What a message of the voice server can raise in discord.py or davey when it is not as it should be; OSError
# when the answer to it finds the websocket closing, which the next read reports properly.
_BAD_MESSAGE = (ValueError, KeyError, IndexError, TypeError, AttributeError, RuntimeError, struct.error, OSError)

# A change of keys is executed when the slowest member is ready, within two seconds. One that is still waited for
# after this time was called off.
_TRANSITION_S = 10.0

# A resumption takes one round trip; then joining anew is quicker.
_RESUME_S = 5.0


class PollingReader(SocketReader):
    """Reads the UDP socket: by `poll`, until it is empty, and with a look at the clock when nothing comes.

    The stock reader uses `select`, which goes deaf and spins when the socket's number is 1024 or more, and reads
    one datagram a wake-up.
    """

    def __init__(self, state: ReceivingState) -> None:
        super().__init__(state)
        self._receiving = state
        # Paused until `resume`, from before the thread runs: the stock pauses itself when its thread gets going,
        # and on a busy machine undoes a `resume` or a `stop` that came before.
        self._idle_paused = False

    def run(self) -> None:
        """Read until `stop`."""
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
                # Between two connections there is no socket, or a closed one.
                time.sleep(_NO_SOCKET_PAUSE_S)
                continue
            if readable:
                self._drain(sock)
            wait_s = self._flush()

    def _drain(self, sock: Any) -> None:
        for _ in range(_DRAIN):
            try:
                datagram = sock.recv(_DATAGRAM_BYTES)
            except OSError:
                # Empty; or an ICMP error, which poll reports as readable and this call has cleared.
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


class TolerantWebSocket(DiscordVoiceWebSocket):
    """The voice websocket: one bad message costs that message, not the task that reads them all."""

    _connection: ReceivingState
    resumed = False

    async def poll_event(self) -> None:
        """Read one message. One that is not even JSON is dropped; a break that can be resumed is called so."""
        try:
            await super().poll_event()
        except ValueError as error:
            _log.warning("voice_message_refused", op=None, error_class=type(error).__name__)
        except discord.ConnectionClosed as closed:
            if closed.code in RESUMABLE and self._connection.is_connected():
                # The stock resumes after 4015 alone, and leaves the channel and joins it anew after all others.
                closed.code = SERVER_CRASHED
            raise

    async def received_message(self, msg: dict[str, Any]) -> None:
        """Handle a JSON message. Besides the stock's work: a session that starts unencrypted can still go up."""
        op = msg.get("op") if isinstance(msg, dict) else None
        if op == self.READY:
            # Before a packet of the new connection can come: every SSRC is dealt anew.
            self._connection.begin_anew()
        if op == self.RESUMED:
            self.resumed = True
        if op in (self.READY, self.SESSION_DESCRIPTION):
            # Without these two there is no connection: whatever is wrong with them must fail it.
            await super().received_message(msg)
            return
        try:
            await self._start_encryption(msg)
            await super().received_message(msg)
        except _BAD_MESSAGE as error:
            _log.warning("voice_message_refused", op=op, error_class=type(error).__name__)

    async def received_binary_message(self, msg: bytes) -> None:
        """Handle an MLS message: what cannot be processed makes us join the group anew, as the protocol asks."""
        try:
            session = self._connection.dave_session
            if session is not None and len(msg) > 3 and msg[2] == self.MLS_PROPOSALS:
                await self._process_proposals(session, msg)
            else:
                await super().received_binary_message(msg)
        except _BAD_MESSAGE as error:
            _log.warning("mls_message_refused", op=msg[2] if len(msg) > 2 else None, reason=str(error)[:120])
            await self._connection.recover_group()

    async def _start_encryption(self, msg: dict[str, Any]) -> None:
        """Make the session that op 24 asks for. The stock looks at op 24 only where a session exists already."""
        state = self._connection
        if msg.get("op") == self.DAVE_PREPARE_EPOCH and state.dave_session is None and msg["d"]["epoch"] == 1:
            state.dave_protocol_version = msg["d"]["protocol_version"]
            await state.reinit_dave_session()

    async def _process_proposals(self, session: davey.DaveSession, msg: bytes) -> None:
        """Process op 27 as the stock does, but refuse to add people whom the gateway did not announce."""
        state = self._connection
        self.seq_ack = struct.unpack_from(">H", msg, 0)[0]
        kind = davey.ProposalsOperationType.append if msg[3] == 0 else davey.ProposalsOperationType.revoke
        expected = [*state.receiver.members, state.user.id]
        result = session.process_proposals(kind, msg[4:], expected)
        if isinstance(result, davey.CommitWelcome):
            await self.send_binary(self.MLS_COMMIT_WELCOME, result.commit + (result.welcome or b""))

    async def discover_ip(self) -> tuple[str, int]:
        """Ask the voice server for our outer address: listen first, then ask, and ask again.

        The stock asks before it listens, so a reader that is running already eats the answer, and it asks once.
        Raises `TimeoutError`.
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
    """The changes of keys that were announced and not executed (DAVE's transitions), each with its protocol version.

    The voice server may call one off without a word, and discord.py forgets only what is executed.
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
        """Return whether one of them is still to be expected."""
        now = self._clock()
        return any(now < self._announced[transition_id] + _TRANSITION_S for transition_id in self)


class ReceivingState(VoiceConnectionState):
    """The voice connection's state machine, with our websocket and reader, and without its lost wake-ups."""

    dave_pending_transitions: PendingTransitions

    def __init__(self, voice_client: ReceivingClient, *, receiver: Receiver, on_state: Callable[[bool], None]) -> None:
        """`on_state` is told on the event loop whether the connection is up, whenever that changes."""
        self.receiver = receiver
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

    # What arrives.

    def begin_anew(self) -> None:
        """Forget what belonged to the connection before."""
        self._rejoining_until = float("-inf")
        self.dave_pending_transitions.clear()
        self.dave_downgraded = False
        self.receiver.reset()

    def _datagram(self, datagram: bytes) -> None:
        self.receiver.datagram(datagram, self)

    async def _heard_of(self, ws: DiscordVoiceWebSocket, msg: dict[str, Any]) -> None:
        """Tell the receiver what the voice gateway says about people."""
        data = msg.get("d") or {}
        match msg.get("op"):
            case DiscordVoiceWebSocket.CLIENTS_CONNECT:
                self.receiver.joined({int(user_id) for user_id in data["user_ids"]} - {self.user.id})
            case DiscordVoiceWebSocket.SPEAKING if data.get("user_id") is not None:
                self.receiver.speaks(int(data["ssrc"]), int(data["user_id"]), announced=bool(data.get("speaking")))
            case DiscordVoiceWebSocket.CLIENT_CONNECT if data.get("user_id") is not None and data.get("audio_ssrc"):
                # Op 12 tells of video, and names the audio's SSRC beside it.
                self.receiver.speaks(int(data["audio_ssrc"]), int(data["user_id"]), announced=False)
            case DiscordVoiceWebSocket.CLIENT_DISCONNECT:
                self.receiver.left(int(data["user_id"]))
            case DiscordVoiceWebSocket.DAVE_EXECUTE_TRANSITION:
                self.receiver.rekeyed()

    # What is done otherwise than in the stock.

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
        """Wait for a state. The stock's event is set and cleared at once, and its waiter starts a tick later.

        So the stock sleeps through a server update that comes three ticks after the state update. Here the waiter
        is there before anything can happen.
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
        """Ask Discord for the channel, ready for its answer: the stock gets ready only after asking."""
        if self.state is ConnectionFlowState.disconnected:
            self.state = ConnectionFlowState.set_guild_voice_state
        await super()._voice_connect(self_deaf=self_deaf, self_mute=self_mute)

    async def voice_state_update(self, data: Any) -> None:
        """Follow Discord's word about us; note when somebody else took us out of the channel, or into another one.

        The stock never takes back that we were once out, so after one reconnection it would take the next move to
        another server (4014) for the end.
        """
        if data["channel_id"] is not None:
            self._disconnected.clear()
            if int(data["channel_id"]) != self.voice_client.channel.id:
                self.removed = True
                if self.is_connected():
                    # The stock would follow, and hear people who were told nothing of it.
                    return
        elif not self._expecting_disconnect:
            if self.session_id is None:
                # We are not in yet, so it is a late word of the client before us.
                return
            self.removed = True
        await super().voice_state_update(data)

    async def _inner_connect(self, reconnect: bool, self_deaf: bool, self_mute: bool, resume: bool) -> None:
        """Connect; or resume, and connect only where that fails.

        The stock asks the main gateway for the channel even to resume. Discord has nothing to answer then, so the
        stock waits until its timeout and gives the connection up.
        """
        if resume:
            try:
                async with asyncio.timeout(_RESUME_S):
                    await self._resume()
                return
            except (discord.ConnectionClosed, aiohttp.ClientError, OSError) as error:
                _log.info("voice_resume_refused", reason=str(error)[:120], error_class=type(error).__name__)
            await self.disconnect(cleanup=False)
        await super()._inner_connect(reconnect, self_deaf, self_mute, resume=False)

    async def _resume(self) -> None:
        """Take the voice session up on a new websocket (op 7): keys, SSRCs, group and UDP socket stay."""
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
        """Leave the group and ask to be added anew (op 31), once: until we are, the old group's messages fail."""
        now = time.monotonic()
        session = self.dave_session
        if now < self._rejoining_until and session is not None and not session.ready:
            return
        self._rejoining_until = now + _REJOIN_S
        await super()._recover_from_invalid_commit(transition_id)

    async def recover_group(self) -> None:
        """Join the end-to-end group anew because its keys no longer fit, or a message could not be processed."""
        try:
            await self._recover_from_invalid_commit(0)
        except OSError as error:
            _log.warning("group_recovery_not_sent", error_class=type(error).__name__)

    async def _handshake_websocket(self) -> None:
        """Shake hands as the stock does, and keep the reason when the server refuses."""
        try:
            await super()._handshake_websocket()
        except discord.ConnectionClosed as closed:
            self.close_code = closed.code
            reason = fatal_reason(closed.code)
            if reason is not None:
                raise LinkError(reason, retryable=False) from closed
            raise

    # What the link asks.

    @property
    def runner_alive(self) -> bool:
        """Return whether the task that reads the voice websocket runs, or the one that is to start it."""
        task = self._runner or self._connector
        return task is None or not task.done()

    @property
    def in_transition(self) -> bool:
        """Return whether keys are changing, so that frames may fail to decrypt for a moment."""
        return self.dave_pending_transitions.under_way or time.monotonic() < self._rejoining_until


class ReceivingClient(discord.VoiceClient):
    """discord.py's voice client that also receives. Created by `channel.connect(cls=…)`."""

    # Discord offers others only to old clients, and the receiver opens this one alone.
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
    ) -> None:
        """`receiver` is given every datagram, and what the gateway says of people; `metronome` sends what is ours."""
        self._receiver = receiver
        self._on_state = on_state
        self._metronome = metronome
        self._line: MetronomeLine | None = None
        super().__init__(client, channel)

    def create_connection_state(self) -> ReceivingState:
        """Return the state machine that hears."""
        return ReceivingState(self, receiver=self._receiver, on_state=self._on_state)

    @property
    def connection(self) -> ReceivingState:
        """Return the connection's state, for the link."""
        return self._connection

    @property
    def forgotten(self) -> bool:
        """Return whether a new main session, which knows the server again, tells us nothing any more."""
        guild = self.client.get_guild(self.guild.id)
        return self not in self.client.voice_clients and guild is not None and not guild.unavailable

    @property
    def can_send(self) -> bool:
        """Return whether a frame sent now would be encrypted as the room is. Any thread may ask."""
        state = self._connection
        return state.is_connected() and (state.dave_protocol_version == 0 or state.can_encrypt)

    @property
    def keys(self) -> object:
        """Return something that changes whenever what was sealed before no longer fits. Any thread may ask."""
        session = self._connection.dave_session
        # The epoch's number stays when a group is made anew, so the session counts as well.
        return self._connection.can_encrypt, id(session), None if session is None else session.epoch

    def seal(self, packet: bytes) -> bytes:
        """Return one Opus packet of 20 ms as the next datagram, encrypted for the room of now. From one thread."""
        self.checked_add("sequence", 1, 65535)
        datagram: bytes = self._get_voice_packet(packet)
        self.checked_add("timestamp", DISCORD_FRAME_SAMPLES, 4294967295)
        return datagram

    @property
    def keeps_time(self) -> bool:
        """Return whether `send` waits for a datagram's time."""
        return self._metronome is not None and self._metronome.alive

    def send(self, datagram: bytes, *, at: float) -> None:
        """Send what was sealed, at `at` where time is kept, else now. What the network refuses is lost."""
        sock = self._connection.socket
        if sock is MISSING or sock.fileno() < 0:
            return
        if self._metronome is not None and self._metronome.alive:
            line = self._line
            if line is None or line.sock is not sock:
                # Every connection has a socket of its own.
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
        """Tell the room whether we speak (op 5). Any thread may call; it is not waited for."""
        state = discord.SpeakingState.voice if speaking else discord.SpeakingState.none
        asyncio.run_coroutine_threadsafe(self._speak(state), self.loop)

    async def _speak(self, state: discord.SpeakingState) -> None:
        try:
            await self.ws.speak(state)
        except (OSError, AttributeError) as error:
            # The websocket is closing or not there yet; speaking is told again after the reconnection.
            _log.debug("speaking_not_told", error_class=type(error).__name__)

    async def retire(self, *, timeout_s: float) -> None:
        """Leave the channel for good and end every task and thread of this client.

        *Cancellation*: may be cut short; the client is unregistered all the same.
        """
        state = self._connection
        try:
            # First the tasks: an orphaned one would take the next client out of the channel.
            for task in (state._runner, state._connector):
                if task is not None:
                    await _end_task(task)
            # A client that a new main session forgot is told nothing.
            is_told = state.state is not ConnectionFlowState.disconnected and self in self.client.voice_clients
            async with asyncio.timeout(timeout_s):
                # Without the stock's own waiting, which swallows cancellation, and with the cleaning up left for
                # after ours: a client that is unregistered is told nothing any more.
                await state.disconnect(force=True, cleanup=False, wait=False)
                if is_told:
                    # A late word of our leaving would confuse the next client.
                    await state._disconnected.wait()
        except TimeoutError:
            _log.warning("leaving_voice_timed_out", timeout_s=timeout_s)
        finally:
            self.cleanup()
            state._socket_reader.stop()
            self._close_line()
        await asyncio.to_thread(state._socket_reader.join, 1.0)


async def _end_task(task: asyncio.Task[Any]) -> None:
    """Cancel until it holds: Python 3.11's `wait_for` swallows a cancellation that comes with a message."""
    for _ in range(50):
        if task.done():
            if not task.cancelled():
                # Nobody else asks for it, and discord.py has logged it.
                task.exception()
            return
        task.cancel()
        await asyncio.wait([task], timeout=0.1)


def _end_thread(reader: SocketReader) -> None:
    """End the stock reader, which its constructor started. A stop before it began to run is lost, so repeat it."""
    for _ in range(100):
        reader.stop()
        reader.join(0.01)
        if not reader.is_alive():
            return
