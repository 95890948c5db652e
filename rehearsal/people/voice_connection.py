"""The I/O of a person's voice connection: one websocket and one UDP socket.

The connection owns the task `person-connection-USER`, which runs the websocket. The task `person-heartbeat-USER` ends
with that websocket. Nothing breaks a connection on 127.0.0.1 unless a test orders it, so a connection that is lost
stays lost: whoever waits for it is told. The protocol itself is in `voice_session` and `dave`; this module only sends,
receives and waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp

from rehearsal.errors import PersonError, RehearsalError
from rehearsal.people.dave import MAX_VERSION, GatewayMessage, JsonMessage
from rehearsal.people.media_socket import MODE, MediaSocket
from rehearsal.people.voice_session import (
    READY,
    SESSION_DESCRIPTION,
    JoinChannel,
    LeaveChannel,
    ReceivedOpus,
    VoiceServerAccess,
    VoiceSessionState,
)
from rehearsal.waiting import Changes, cancel_and_wait

_IDENTIFY, _SELECT_PROTOCOL, _HEARTBEAT, _SPEAKING = 0, 1, 3, 5

# Everything runs on 127.0.0.1, so an answer that takes longer than this, also on a busy machine, will never come.
_ANSWER_S = 20.0


class PersonVoiceConnection:
    """Keeps one person connected from `__aenter__` to `__aexit__`.

    *Cancellation*: leaving the context cancels the connection's task and closes both sockets. *Ownership*: the caller
    keeps `join`, `leave` and the TLS context usable.
    """

    def __init__(
        self,
        *,
        join: JoinChannel,
        leave: LeaveChannel | None,
        tls: ssl.SSLContext,
        on_opus: Callable[[ReceivedOpus], None],
    ) -> None:
        """`on_opus` is called in the event loop for each Opus packet. `tls` trusts the server's certificate."""
        self._join = join
        self._leave = leave
        self._tls = tls
        self._on_opus = on_opus
        self.call: VoiceSessionState | None = None
        self._websocket: aiohttp.ClientWebSocketResponse | None = None
        self._media: MediaSocket | None = None
        self._changes = Changes()
        self._failure: PersonError | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Join, and wait until the voice server has sent the session description. Raises `PersonError`."""
        admission = VoiceServerAccess.parse(await self._join())
        self._task = asyncio.create_task(self._run(admission), name=f"person-connection-{admission.user_id}")
        try:
            await self._wait(lambda call: call.codec is not None, _ANSWER_S, "could not connect to the call")
        except BaseException:
            await cancel_and_wait(self._task)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close both sockets and leave the channel. Raises what broke the task, unless waiters were told."""
        assert self._task is not None, "entered before"
        try:
            await cancel_and_wait(self._task)
        finally:
            if self._leave is not None:
                # The member may have left already.
                with contextlib.suppress(RehearsalError):
                    await self._leave()

    async def wait_until_can_send(self, timeout_s: float) -> None:
        """Wait until sound can be encrypted and sent. Raises `PersonError` after the timeout."""
        await self._wait(
            lambda call: call.can_send and self._websocket is not None,
            timeout_s,
            "has no keys to speak with (alone in the call?)",
        )

    async def wait_until_with(self, user_id: int, timeout_s: float) -> None:
        """Wait until `user_id` is in the call too. Raises `PersonError`."""
        await self._wait(lambda call: user_id in call.members, timeout_s, f"never met member {user_id}")

    def send(self, opus: bytes) -> bool:
        """Send the next 20 ms of audio. Return False when it cannot be sent (no keys, or the call is lost)."""
        datagram = self.call.seal(opus) if self.call is not None else None
        return datagram is not None and self._media is not None and self._media.send(datagram)

    async def set_speaking(self, speaking: bool) -> None:
        """Announce the start or end of speaking (op 5)."""
        if self.call is not None and self.call.codec is not None:
            await self._send(JsonMessage(_SPEAKING, {"speaking": int(speaking), "delay": 0, "ssrc": self.call.ssrc}))

    # ---- the connection's task ----

    async def _run(self, admission: VoiceServerAccess) -> None:
        """Run the session until it is cancelled. A loss is raised in the tasks that wait for the connection."""
        reason = "the server closed the connection"
        try:
            async with aiohttp.ClientSession() as http:
                code = await self._serve(http, VoiceSessionState(admission))
                reason = f"the server closed the connection with code {code}"
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, TypeError, KeyError) as exc:
            reason = f"{type(exc).__name__}: {exc}"
        finally:
            self._websocket = None
            if self._media is not None:
                self._media.close()
        self._failure = PersonError(f"Member {admission.user_id} lost the call at {admission.endpoint}: {reason}.")
        self._changes.tell()

    async def _serve(self, http: aiohttp.ClientSession, call: VoiceSessionState) -> int | None:
        """Run the session to its end. Return the close code of its websocket."""
        self.call, who = call, call.admission
        async with (
            asyncio.timeout(_ANSWER_S) as opening,
            http.ws_connect(f"wss://{who.endpoint}/?v=8", ssl=self._tls, max_msg_size=0) as websocket,
        ):
            hello = await websocket.receive_json()
            interval_s = float(hello["d"]["heartbeat_interval"]) / 1000
            self._websocket = websocket
            identity = {
                "server_id": str(who.guild_id),
                "session_id": who.session_id,
                "token": who.token,
                "user_id": str(who.user_id),
                "max_dave_protocol_version": MAX_VERSION,
            }
            await self._send(JsonMessage(_IDENTIFY, identity))
            # A TaskGroup would wrap the error that breaks the websocket in an ExceptionGroup, so a plain task is used.
            beating = asyncio.create_task(self._beat(call, interval_s), name=f"person-heartbeat-{who.user_id}")
            try:
                await self._listen(websocket, call, opening)
            finally:
                await cancel_and_wait(beating)
        return websocket.close_code

    async def _beat(self, call: VoiceSessionState, interval_s: float) -> None:
        while True:
            await self._send(JsonMessage(_HEARTBEAT, {"t": int(time.monotonic() * 1000), "seq_ack": call.seq_ack}))
            await asyncio.sleep(interval_s)

    async def _listen(
        self, websocket: aiohttp.ClientWebSocketResponse, call: VoiceSessionState, opening: asyncio.Timeout
    ) -> None:
        """Handle and answer messages until the websocket closes. `opening` is lifted by the session's description."""
        while True:
            message = await websocket.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                answers = call.handle_binary(message.data)
            elif message.type is aiohttp.WSMsgType.TEXT:
                answers = await self._handle_text(call, json.loads(message.data), opening)
            else:
                return
            for answer in answers:
                await self._send(answer)
            self._changes.tell()

    async def _handle_text(
        self, call: VoiceSessionState, message: Mapping[str, Any], opening: asyncio.Timeout
    ) -> list[GatewayMessage]:
        op, body = int(message["op"]), message.get("d") or {}
        call.seq_ack = int(message.get("seq", call.seq_ack))
        answers = call.handle_json(op, body) if isinstance(body, dict) else []
        if op == READY:
            address, port = await self._open_media(call)
            data = {"address": address, "port": port, "mode": MODE}
            answers = [JsonMessage(_SELECT_PROTOCOL, {"protocol": "udp", "data": data})]
        elif op == SESSION_DESCRIPTION:
            opening.reschedule(None)
            # Discord must know our SSRC before the first packet, so op 5 is sent even while the person is silent.
            await self.set_speaking(False)
        return answers

    async def _open_media(self, call: VoiceSessionState) -> tuple[str, int]:
        """Open the UDP socket and discover our address as the server sees it."""

        def on_datagram(data: bytes, at: float) -> None:
            for heard in call.open(data, at):
                self._on_opus(heard)

        self._media = await MediaSocket.open(call.server, on_datagram)
        return await self._media.discover(call.ssrc)

    # ---- helpers ----

    async def _send(self, message: GatewayMessage) -> None:
        """Send a message. While the websocket closes the message is dropped."""
        websocket = self._websocket
        if websocket is None or websocket.closed:
            return
        with contextlib.suppress(ConnectionError, TimeoutError, aiohttp.ClientError):
            async with asyncio.timeout(_ANSWER_S):
                if isinstance(message, JsonMessage):
                    await websocket.send_str(json.dumps({"op": message.op, "d": message.body}))
                else:
                    await websocket.send_bytes(bytes([message.op]) + message.body)

    async def _wait(self, condition: Callable[[VoiceSessionState], bool], timeout_s: float, otherwise: str) -> None:
        def settled() -> bool:
            return self._failure is not None or (self.call is not None and condition(self.call))

        if not await self._changes.until(settled, timeout_s=timeout_s):
            who = self.call.admission.user_id if self.call is not None else "?"
            raise PersonError(f"Member {who} {otherwise} within {timeout_s:g} s.")
        if self._failure is not None:
            raise self._failure
