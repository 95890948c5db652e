"""The voice websocket: drops bad messages, rejoins the group where the protocol asks for it, and finds our address."""

from __future__ import annotations

import asyncio
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import davey
import structlog
from discord.gateway import DiscordVoiceWebSocket

from voice.transport.rtp import is_discovery_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voice.transport.private.connection_state import ReceivingState
    from voice.transport.receiver import Receiver


def forward_people(msg: Mapping[str, Any], receiver: Receiver, *, own_id: int, replayed: bool = False) -> None:
    """Tell `receiver` what a message says about people; other messages say nothing. `own_id`: the bot's user id.
    `replayed`: it was missed and is sent again after a resumption, so who began to speak then may be done long since.

    A malformed message raises what reading it raises (`KeyError`, `ValueError`, …), which the websocket survives.
    """
    data = msg.get("d") or {}
    match msg.get("op"):
        case DiscordVoiceWebSocket.CLIENTS_CONNECT:
            receiver.joined({_snowflake(user_id) for user_id in data["user_ids"]} - {own_id})
        case DiscordVoiceWebSocket.SPEAKING if data.get("user_id") is not None:
            announced = bool(data.get("speaking")) and not replayed
            receiver.speaks(int(data["ssrc"]), _snowflake(data["user_id"]), announced=announced)
        case DiscordVoiceWebSocket.CLIENT_CONNECT if data.get("user_id") is not None and data.get("audio_ssrc"):
            # Op 12 announces video, and names the SSRC of the audio too.
            receiver.speaks(int(data["audio_ssrc"]), _snowflake(data["user_id"]), announced=False)
        case DiscordVoiceWebSocket.CLIENT_DISCONNECT:
            receiver.left(_snowflake(data["user_id"]))
        case DiscordVoiceWebSocket.DAVE_EXECUTE_TRANSITION:
            receiver.rekeyed()


def _snowflake(value: Any) -> int:
    """Return an id of Discord. Raises `ValueError` or `TypeError` for a value that is none.

    davey takes 64 bits, and one member with another id would make every frame of an unknown sender fail.
    """
    number = int(value)
    if not 0 <= number < 2**64:
        raise ValueError("not an id")
    return number


_log = structlog.get_logger()

# The server answers each heartbeat, which discord.py sends every five seconds. discord.py waits for 30 s.
SILENCE_S = 8.0

_CLOSE_S = 1.0
# The server sends what was missed right after a resumption.
_REPLAY_S = 1.0

# UDP may lose the request or the answer of IP discovery.
DISCOVERY_TRIES = 5
DISCOVERY_WAIT_S = 1.0

# What a malformed message of the voice server can raise in discord.py or davey. OSError: the websocket closes while the
# answer is sent, which the next read reports properly.
_BAD_MESSAGE = (
    ValueError, KeyError, IndexError, TypeError, AttributeError, RuntimeError, OverflowError, struct.error, OSError,
)  # fmt: skip

# The largest numbers in a key change: versions and transitions have 16 bits, epochs 64 (DAVE's protocol.md).
_LARGEST = {"protocol_version": 2**16 - 1, "transition_id": 2**16 - 1, "epoch": 2**64 - 1}


class TolerantWebSocket(DiscordVoiceWebSocket):
    """The voice websocket. A bad message is dropped; the task that reads the messages goes on."""

    _connection: ReceivingState
    resumed = False
    # Whether the message that was read last is JSON.
    _is_json = False
    # Monotonic seconds. Messages until then may be those that were missed before a resumption.
    replays_until = float("-inf")
    # The epoch in which a commit of ours adds somebody, and the one in which such a commit was not sent.
    _adds_in: int | None = None
    _withheld_in: int | None = None

    async def poll_event(self) -> None:
        """Read one message. Drops a message that is not JSON.

        Raises `TimeoutError` if the server has gone silent. An error in READY or the session description is raised as
        it is, because there is no connection without them.
        """
        self._is_json = False
        try:
            async with asyncio.timeout(SILENCE_S):
                await super().poll_event()
        except ValueError as error:
            if self._is_json:
                raise
            _log.warning("voice_message_refused", op=None, error_class=type(error).__name__)

    async def close(self, code: int = 1000) -> None:
        """Close the websocket. A server that does not answer is not waited for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await super().close(code)

    async def received_message(self, msg: dict[str, Any]) -> None:
        """Handle a JSON message. Unlike discord.py, lets a session that started unencrypted switch to encryption."""
        self._is_json = True
        op = msg.get("op") if isinstance(msg, dict) else None
        if op == self.READY:
            # Do this before a packet of the new connection can come, because the server assigns all SSRCs anew.
            self._connection.begin_anew()
        if op == self.RESUMED:
            self.resumed = True
            self.replays_until = time.monotonic() + _REPLAY_S
        if op in (self.READY, self.SESSION_DESCRIPTION):
            # There is no connection without these two messages, so an error in them must fail it.
            await super().received_message(msg)
            return
        try:
            self._check_numbers(msg)
            await self._start_encryption(msg)
            await super().received_message(msg)
            if op == self.CLIENT_DISCONNECT:
                await self._rejoin_if_alone()
        except _BAD_MESSAGE as error:
            _log.warning("voice_message_refused", op=op, error_class=type(error).__name__)

    async def load_secret_key(self, data: dict[str, Any]) -> None:
        """Keep the transport key of op 4 as bytes, because each packet is opened with them.

        What is no list of bytes becomes an empty key, which opens nothing.
        """
        sent = data["secret_key"]
        is_key = isinstance(sent, list) and all(isinstance(each, int) and 0 <= each <= 255 for each in sent)
        await super().load_secret_key({**data, "secret_key": bytes(sent) if is_key else b""})

    async def received_binary_message(self, msg: bytes) -> None:
        """Handle an MLS message. After one that cannot be processed, rejoin the group, as the protocol asks."""
        try:
            session = self._connection.dave_session
            if len(msg) > 3 and msg[2] == self.MLS_EXTERNAL_SENDER:
                # Before the upgrade of an unencrypted call there is no session that could keep it.
                self._connection.external_sender = msg[3:]
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
            session = davey.DaveSession(msg["d"]["protocol_version"], state.user.id, state.voice_client.channel.id)
            if state.external_sender is not None:
                session.set_external_sender(state.external_sender)
            state.dave_session = session
            # Until the transition is executed, people still send without encryption.
            state.dave_downgraded = True

    async def _process_proposals(self, session: davey.DaveSession, msg: bytes) -> None:
        """Process op 27 as discord.py does, but refuse to add people whom the gateway did not announce."""
        state = self._connection
        self.seq_ack = struct.unpack_from(">H", msg, 0)[0]
        if session.status is davey.SessionStatus.inactive:
            # protocol.md, "Initial Group Creation": without a local group, proposals are ignored.
            _log.info("mls_proposals_ignored")
            return
        kind = davey.ProposalsOperationType.append if msg[3] == 0 else davey.ProposalsOperationType.revoke
        expected = [*state.receiver.members, state.user.id]
        result = session.process_proposals(kind, msg[4:], expected)
        if not isinstance(result, davey.CommitWelcome):
            return
        if result.welcome is not None:
            self._adds_in = session.epoch
        elif self._adds_in == session.epoch:
            # davey 0.1.7 loses the Welcome of an Add if a second batch of proposals follows in the same epoch. Whoever
            # is added by such a commit is shut out (protocol.md: a commit that adds members has a Welcome).
            _log.warning("commit_without_welcome_not_sent", epoch=session.epoch)
            self._withheld_in = session.epoch
            await self._rejoin_if_alone()
            return
        await self.send_binary(self.MLS_COMMIT_WELCOME, result.commit + (result.welcome or b""))

    async def _rejoin_if_alone(self) -> None:
        """Join the group anew if a commit was not sent and no other member is there who could commit."""
        state = self._connection
        session = state.dave_session
        if session is None or self._withheld_in is None or self._withheld_in != session.epoch:
            return
        if not {int(each) for each in session.get_user_ids()} & set(state.receiver.members):
            self._adds_in = self._withheld_in = None
            await state.recover_group()

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
            for _ in range(DISCOVERY_TRIES):
                await loop.sock_sendall(state.socket, question)
                done, _pending = await asyncio.wait([answered], timeout=DISCOVERY_WAIT_S)
                if done:
                    break
            else:
                raise TimeoutError("The voice server did not answer over UDP.")
        finally:
            state.remove_socket_listener(listen)
        found = answered.result()
        return found[8 : found.index(0, 8)].decode("ascii", "replace"), struct.unpack_from(">H", found, 72)[0]
