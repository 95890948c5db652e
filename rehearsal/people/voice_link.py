"""The I/O of a person's voice connection: one websocket and one UDP socket, which are reconnected when they break.

The link owns the task `person-link-USER`, which runs the websocket. The task `person-heartbeat-USER` ends with that
websocket. A broken websocket is resumed (op 7). If that fails, the person joins again with new credentials. The
protocol itself is in `voice_session` and `dave`; this module only sends, receives and waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import structlog

from rehearsal.errors import PersonError, RehearsalError
from rehearsal.people.dave import MAX_VERSION, GatewayMessage, JsonMessage
from rehearsal.people.media_socket import MODE, MediaSocket
from rehearsal.people.tasks import cancel_and_wait
from rehearsal.people.voice_session import (
    READY,
    SESSION_DESCRIPTION,
    JoinChannel,
    LeaveChannel,
    PersonPacketCounts,
    ReceivedOpus,
    VoiceServerAccess,
    VoiceSessionState,
)

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping
    from types import TracebackType

_log = structlog.get_logger()

_IDENTIFY, _SELECT_PROTOCOL, _HEARTBEAT, _SPEAKING = 0, 1, 3, 5
_RESUME, _HELLO, _RESUMED = 7, 8, 9

# After these close codes the old session does not exist any more, and op 7 would be refused (Discord's voice close
# codes: session no longer valid, session timeout, disconnected or moved).
_NOT_RESUMABLE = frozenset({4006, 4009, 4014})
# Everything runs on 127.0.0.1, so an answer that takes longer than this will never come.
_ANSWER_S = 5.0
# The most attempts in a row that may end before a session description, and the waits between them.
_BACKOFF_S = (0.1, 0.3, 1.0)


class PersonVoiceLink:
    """Keeps one person connected from `__aenter__` to `__aexit__`.

    *Cancellation*: leaving the context cancels the link's task and closes both sockets. *Ownership*: the caller keeps
    `join`, `leave` and the TLS context usable.
    """

    def __init__(
        self,
        *,
        join: JoinChannel,
        leave: LeaveChannel | None,
        tls: ssl.SSLContext,
        on_opus: Callable[[ReceivedOpus], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_opus` is called in the event loop for each Opus packet. `tls` trusts the server's certificate."""
        self._join = join
        self._leave = leave
        self._tls = tls
        self._on_opus = on_opus
        self._clock = clock
        self.counts = PersonPacketCounts()
        self.sessions = 0
        self.resumes = 0
        self._call: VoiceSessionState | None = None
        self._websocket: aiohttp.ClientWebSocketResponse | None = None
        self._media: MediaSocket | None = None
        self._opening: asyncio.Timeout | None = None
        self._speaking = False
        self._changed = asyncio.Condition()
        self._failure: RehearsalError | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Join, and wait until the voice server has sent the session description. Raises `PersonError`."""
        admission = VoiceServerAccess.parse(await self._join())
        self._task = asyncio.create_task(self._run(admission), name=f"person-link-{admission.user_id}")
        try:
            await self._wait(lambda call: call.codec is not None, _ANSWER_S, "could not connect to the call")
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close both sockets and leave the channel. Raises what broke the link's task, unless waiters were told."""
        try:
            await self._stop()
        finally:
            await self._leave_channel()

    @property
    def call(self) -> VoiceSessionState | None:
        """Return the current session, if any."""
        return self._call

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
        """Send the next 20 ms of audio. Return False when it cannot be sent (no keys, or reconnecting)."""
        datagram = self._call.seal(opus) if self._call is not None else None
        sent = datagram is not None and self._media is not None and self._media.send(datagram)
        self.counts.sent += sent
        self.counts.unsent += not sent
        return sent

    async def set_speaking(self, speaking: bool) -> None:
        """Announce the start or end of speaking (op 5). A new session announces it again."""
        self._speaking = speaking
        await self._announce()

    async def _announce(self) -> None:
        if self._call is not None and self._call.codec is not None:
            body = {"speaking": int(self._speaking), "delay": 0, "ssrc": self._call.ssrc}
            await self._send(JsonMessage(_SPEAKING, body))

    # ---- the link's task ----

    async def _run(self, admission: VoiceServerAccess) -> None:
        """Run one session after another until cancelled. A failure is raised in the tasks that wait for the link."""
        failures = 0
        try:
            async with aiohttp.ClientSession() as http:
                while True:
                    before = self.sessions
                    await self._serve(http, VoiceSessionState(admission, self.counts))
                    failures = 0 if self.sessions > before else failures + 1
                    if failures > len(_BACKOFF_S):
                        raise PersonError(
                            f"Member {admission.user_id} could not enter the call at {admission.endpoint}."
                        )
                    await asyncio.sleep(_BACKOFF_S[failures - 1] if failures else 0)
                    admission = await self._fresh_admission()
        except RehearsalError as exc:
            self._failure = exc
            await self._notify()

    async def _fresh_admission(self) -> VoiceServerAccess:
        # Discord sends a voice server only when the channel changes, so the member leaves first.
        await self._leave_channel()
        return VoiceServerAccess.parse(await self._join())

    async def _serve(self, http: aiohttp.ClientSession, call: VoiceSessionState) -> None:
        """Run one session to its end, and resume its websocket as often as the server allows it."""
        self._call = call
        try:
            code = await self._run_websocket(http, call, resume=False)
            while call.codec is not None and code not in _NOT_RESUMABLE:
                resumes = self.resumes
                code = await self._run_websocket(http, call, resume=True)
                if self.resumes == resumes:
                    break
        finally:
            self._close_media()

    async def _run_websocket(self, http: aiohttp.ClientSession, call: VoiceSessionState, *, resume: bool) -> int | None:
        """Run one websocket until it closes. Return its close code."""
        address = f"wss://{call.admission.endpoint}/?v=8"
        try:
            async with (
                asyncio.timeout(_ANSWER_S) as opening,
                http.ws_connect(address, ssl=self._tls, max_msg_size=0) as websocket,
            ):
                hello = await websocket.receive_json()
                interval_s = float(hello["d"]["heartbeat_interval"]) / 1000
                self._websocket = websocket
                # The timeout is lifted once the server has described or resumed the session.
                self._opening = opening
                await self._send(_opening(call, resume=resume))
                async with self._heartbeat(websocket, call, interval_s):
                    await self._listen(websocket, call, silence_s=2.5 * interval_s + 1)
                return websocket.close_code
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, TypeError, KeyError) as exc:
            _log.info("voice_websocket_failed", user_id=call.admission.user_id, error=type(exc).__name__)
            return None
        finally:
            self._websocket = self._opening = None
            await self._notify()

    @contextlib.asynccontextmanager
    async def _heartbeat(
        self, websocket: aiohttp.ClientWebSocketResponse, call: VoiceSessionState, interval_s: float
    ) -> AsyncIterator[None]:
        async def beat() -> None:
            while not websocket.closed:
                body = {"t": int(self._clock() * 1000), "seq_ack": call.seq_ack}
                await self._send(JsonMessage(_HEARTBEAT, body))
                await asyncio.sleep(interval_s)

        # A TaskGroup would wrap the error that breaks the websocket in an ExceptionGroup, so a plain task is used.
        task = asyncio.create_task(beat(), name=f"person-heartbeat-{call.admission.user_id}")
        try:
            yield
        finally:
            await cancel_and_wait(task)

    async def _listen(
        self, websocket: aiohttp.ClientWebSocketResponse, call: VoiceSessionState, *, silence_s: float
    ) -> None:
        """Handle and answer messages until the websocket closes, or is silent for longer than its heartbeat allows."""
        while True:
            try:
                message = await websocket.receive(timeout=silence_s)
            except TimeoutError:
                await websocket.close()
                return
            if message.type is aiohttp.WSMsgType.BINARY:
                answers = call.handle_binary(message.data)
            elif message.type is aiohttp.WSMsgType.TEXT:
                answers = await self._handle_text(call, json.loads(message.data))
            else:
                return
            for answer in answers:
                await self._send(answer)
            await self._notify()

    async def _handle_text(self, call: VoiceSessionState, message: Mapping[str, Any]) -> list[GatewayMessage]:
        op, body = int(message["op"]), message.get("d") or {}
        call.seq_ack = int(message.get("seq", call.seq_ack))
        answers = call.handle_json(op, body) if isinstance(body, dict) else []
        if op == READY:
            address, port = await self._open_media(call)
            data = {"address": address, "port": port, "mode": MODE}
            answers = [JsonMessage(_SELECT_PROTOCOL, {"protocol": "udp", "data": data})]
        elif op == SESSION_DESCRIPTION:
            self._opened()
            self.sessions += 1
            _log.info("voice_session_described", user_id=call.admission.user_id, ssrc=call.ssrc)
            # Discord must know our SSRC before the first packet, so op 5 is sent even while the person is silent.
            await self._announce()
        elif op == _RESUMED:
            self._opened()
            self.resumes += 1
            _log.info("voice_session_resumed", user_id=call.admission.user_id)
        return answers

    def _opened(self) -> None:
        if self._opening is not None:
            self._opening.reschedule(None)

    async def _open_media(self, call: VoiceSessionState) -> tuple[str, int]:
        """Open the UDP socket and discover our address as the server sees it."""

        def on_datagram(data: bytes, at: float) -> None:
            for heard in call.open(data, at):
                self._on_opus(heard)

        self._close_media()
        async with asyncio.timeout(_ANSWER_S):
            self._media = await MediaSocket.open(call.server, on_datagram, clock=self._clock)
            return await self._media.discover(call.ssrc)

    def _close_media(self) -> None:
        if self._media is not None:
            self._media.close()
            self._media = None

    # ---- helpers ----

    async def _send(self, message: GatewayMessage) -> None:
        """Send a message. While the websocket closes the message is dropped, because the next session starts anew."""
        websocket = self._websocket
        if websocket is None or websocket.closed:
            return
        with contextlib.suppress(ConnectionError, TimeoutError, aiohttp.ClientError):
            async with asyncio.timeout(_ANSWER_S):
                if isinstance(message, JsonMessage):
                    await websocket.send_str(json.dumps({"op": message.op, "d": message.body}))
                else:
                    await websocket.send_bytes(bytes([message.op]) + message.body)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _wait(self, condition: Callable[[VoiceSessionState], bool], timeout_s: float, otherwise: str) -> None:
        def settled() -> bool:
            return self._failure is not None or (self._call is not None and condition(self._call))

        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(settled)
        except TimeoutError as exc:
            who = self._call.admission.user_id if self._call is not None else "?"
            raise PersonError(f"Member {who} {otherwise} within {timeout_s:g} s.") from exc
        if self._failure is not None:
            raise self._failure

    async def _leave_channel(self) -> None:
        """Leave the channel. Do nothing if the member has already left."""
        if self._leave is not None:
            with contextlib.suppress(RehearsalError):
                await self._leave()

    async def _stop(self) -> None:
        if self._task is not None:
            task, self._task = self._task, None
            await cancel_and_wait(task)


def _opening(call: VoiceSessionState, *, resume: bool) -> JsonMessage:
    """Return the first message to send: op 7 to resume, otherwise op 0."""
    who = call.admission
    body: dict[str, Any] = {"server_id": str(who.guild_id), "session_id": who.session_id, "token": who.token}
    if resume:
        return JsonMessage(_RESUME, {**body, "seq_ack": call.seq_ack})
    identity = {"user_id": str(who.user_id), "max_dave_protocol_version": MAX_VERSION}
    return JsonMessage(_IDENTIFY, {**body, **identity})
