"""One connection to the local realtime server. It reads client events and sends server events in the protocol's order.

The names and shapes of events are those of `openai.types.realtime` (the GA protocol). As with the real server, a
client's mistake is answered with an error event, and the session continues. Responses are made one at a time.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import structlog
from aiohttp import WSMsgType, web
from numpy.typing import NDArray

from rehearsal.servers.realtime_behaviour import (
    CONTENT_TYPES,
    ClientError,
    FunctionCall,
    RealtimeMode,
    ResponseRequest,
    ServerItem,
    SharedState,
)

_log = structlog.get_logger()

RATE_HZ = 24_000
CLOSE_GOING_AWAY = 1001
CLOSE_INTERNAL_ERROR = 1011
# The real server refuses a commit of less audio than this.
MIN_COMMIT_MS = 100
# Audio is sent in pieces of this length, faster than the audio plays, as the real server does.
_DELTA = RATE_HZ * 200 // 1000
_PCM = {"type": "audio/pcm", "rate": RATE_HZ}


@dataclass(slots=True)
class _Response:
    """The response that is being made. `metadata`: from the request, for the client to tell responses apart."""

    id: str
    number: int
    metadata: Any
    task: asyncio.Task[None] | None = None


class ServerSession:
    """One connection, which reads client events and sends server events.

    *Ownership*: `serve` owns the tasks that recognise and answer, and ends them with the session.
    """

    def __init__(self, shared: SharedState, socket: web.WebSocketResponse, *, model: str, number: int) -> None:
        self._shared = shared
        self._socket = socket
        self._id = f"sess_{number:04d}"
        self._model = model
        self._instructions = "Be helpful."
        self._tools: list[dict[str, Any]] = []
        self._transcription: dict[str, Any] | None = None
        self._items: list[ServerItem] = []
        self._buffer = np.zeros(0, np.int16)
        self._active: _Response | None = None
        self._numbers = itertools.count(1)
        self._tasks = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Serve the connection to its end. An unexpected error closes it with code 1011."""
        try:
            async with self._tasks:
                await self._handle_events()
                for task in list(self._running):
                    task.cancel()
        except* Exception as errors:  # noqa: BLE001 - it is logged and ends only this session
            _log.exception("realtime_session_failed", error_class=type(errors.exceptions[0]).__name__)
            await self.hang_up("The server had an error.", CLOSE_INTERNAL_ERROR)

    async def hang_up(self, reason: str, code: int = CLOSE_GOING_AWAY) -> None:
        await self._socket.close(code=code, message=reason.encode())

    async def expire(self) -> None:
        """End the session as the real server does after an hour: send an error event, then close."""
        message = "Your session hit the maximum duration of 60 minutes."
        await self._error(ClientError("session_expired", message))
        await self.hang_up(message)

    # -- events ----------------------------------------------------------------------------------------------

    async def _handle_events(self) -> None:
        if self._shared.behaviour.mode is RealtimeMode.SILENT:
            async for _ in self._socket:
                continue
            return
        await self._send("session.created", session=self._session_json())
        if self._shared.behaviour.mode is RealtimeMode.GARBAGE:
            await self._socket.send_str("<html>It works!</html>")
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                event = json.loads(message.data)
                self._shared.received.append(event)
                try:
                    await self._handle(event)
                except ClientError as error:
                    await self._error(error, event_id=event.get("event_id"))

    async def _handle(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "session.update":
                self.configure(event.get("session") or {})
                await self._send("session.updated", session=self._session_json())
            case "input_audio_buffer.append":
                self._buffer = np.concatenate([self._buffer, _pcm(event.get("audio", ""))])
            case "input_audio_buffer.commit":
                await self._commit()
            case "conversation.item.create":
                await self._add(self._given_item(event.get("item") or {}))
            case "conversation.item.delete":
                self._items.remove(self._find(event))
                await self._send("conversation.item.deleted", item_id=event.get("item_id"))
            case "conversation.item.truncate":
                await self._truncate(self._find(event), int(event.get("audio_end_ms", 0)))
            case "response.create":
                await self._respond((event.get("response") or {}).get("metadata"))
            case "response.cancel":
                await self._cancel()
            case other:
                raise ClientError("invalid_value", f"Invalid value: '{other}'.", "type")

    async def _send(self, kind: str, **fields: Any) -> None:
        """Send one numbered event. If the client has disconnected, nothing is sent: the reader ends the session."""
        if self._socket.closed:
            return
        try:
            await self._socket.send_str(json.dumps({"type": kind, "event_id": self._new_id("event"), **fields}))
        except ConnectionResetError:
            return

    async def _error(self, error: ClientError, *, event_id: str | None = None) -> None:
        error_body = {"type": "invalid_request_error", "code": error.code, "message": str(error), "param": error.param}
        await self._send("error", error={**error_body, "event_id": event_id})

    def configure(self, session: dict[str, Any]) -> None:
        if session.get("type") != "realtime":
            raise ClientError("missing_required_parameter", "Missing required parameter: 'session.type'.", "session")
        self._instructions = str(session.get("instructions", self._instructions))
        self._tools = list(session.get("tools", self._tools))
        audio = session.get("audio") or {}
        if any((audio.get(side) or {}).get("format", _PCM) != _PCM for side in ("input", "output")):
            raise ClientError("invalid_value", "This server takes audio/pcm at 24000 alone.", "session.audio")
        heard = audio.get("input") or {}
        self._transcription = heard.get("transcription", self._transcription)
        if heard.get("turn_detection") is not None:
            raise ClientError("invalid_value", "This server takes no turn detection.", "session.audio.input")

    def _session_json(self) -> dict[str, Any]:
        heard = {"format": _PCM, "transcription": self._transcription, "turn_detection": None}
        return {
            "type": "realtime",
            "object": "realtime.session",
            "id": self._id,
            "model": self._model,
            "output_modalities": ["audio"],
            "instructions": self._instructions,
            "tools": self._tools,
            "audio": {"input": heard, "output": {"format": _PCM, "voice": "alloy"}},
        }

    def _new_id(self, kind: str = "item") -> str:
        return f"{kind}_{next(self._numbers):06d}"

    # -- the conversation ------------------------------------------------------------------------------------

    def _find(self, event: Mapping[str, Any]) -> ServerItem:
        """Return the item that a client event names. Raises `ClientError` if it does not exist."""
        item_id = event.get("item_id")
        for item in self._items:
            if item.id == item_id:
                return item
        raise ClientError("item_not_found", f"Item with item_id '{item_id}' not found.", "item_id")

    async def _add(self, item: ServerItem, *, status: str = "completed") -> None:
        """Add an item at the end of the conversation and send its events. Raises `ClientError`."""
        if any(item.id == other.id for other in self._items):
            raise ClientError("invalid_value", f"An item with id '{item.id}' already exists.", "item.id")
        before = self._items[-1].id if self._items else None
        self._items.append(item)
        await self._send("conversation.item.added", previous_item_id=before, item=item.as_json(status=status))
        if status == "completed":
            await self._send("conversation.item.done", previous_item_id=before, item=item.as_json())

    def _given_item(self, given: Mapping[str, Any]) -> ServerItem:
        """Return the item that a client describes. Raises `ClientError`."""
        item = ServerItem(str(given.get("id") or self._new_id()), str(given.get("type")))
        match item.type:
            case "message":
                item.role = str(given.get("role"))
                content = given.get("content") or ()
                kind = CONTENT_TYPES.get(item.role)
                if kind is None or any(each.get("type") != kind for each in content):
                    raise ClientError("invalid_value", f"Invalid content of '{item.role}'.", "item.content[0].type")
                item.text = " ".join(str(each.get("text", "")) for each in content)
            case "function_call":
                item.call_id, item.name = str(given.get("call_id")), str(given.get("name"))
                item.text = str(given.get("arguments"))
            case "function_call_output":
                item.call_id, item.text = str(given.get("call_id")), str(given.get("output"))
                called = [other.name for other in self._items if other.call_id == item.call_id]
                if not called:
                    raise ClientError("invalid_value", f"No function call has the id '{item.call_id}'.", "item.call_id")
                self._shared.tools.append((called[0], item.text))
            case other:
                raise ClientError("invalid_value", f"Invalid value: '{other}'.", "item.type")
        return item

    async def _truncate(self, item: ServerItem, end_ms: int) -> None:
        """Cut the audio and text of an answer. Raises `ClientError`."""
        if item.role != "assistant" or not item.spoken:
            raise ClientError("invalid_value", "Only assistant audio messages can be truncated.", "item_id")
        if end_ms > item.audio_ms:
            raise ClientError("invalid_value", f"Audio content of {item.audio_ms}ms is already shorter than {end_ms}ms")
        words = item.text.split()
        item.text = " ".join(words[: len(words) * end_ms // max(1, item.audio_ms)])
        await self._send("conversation.item.truncated", item_id=item.id, content_index=0, audio_end_ms=end_ms)

    async def _commit(self) -> None:
        pcm, self._buffer = self._buffer, self._buffer[:0]
        length_ms = len(pcm) * 1000 // RATE_HZ
        if length_ms < MIN_COMMIT_MS:
            self._buffer = pcm
            raise ClientError(
                "input_audio_buffer_commit_empty",
                f"Error committing input audio buffer: buffer too small. Expected at least {MIN_COMMIT_MS}ms of "
                f"audio, but buffer only has {length_ms}ms of audio.",
            )
        item = ServerItem(self._new_id(), "message", "user", spoken=True)
        before = self._items[-1].id if self._items else None
        await self._send("input_audio_buffer.committed", previous_item_id=before, item_id=item.id)
        await self._add(item)
        self._spawn(self._transcribe(item, pcm), "transcription")

    async def _transcribe(self, item: ServerItem, pcm: NDArray[np.int16]) -> None:
        name = "conversation.item.input_audio_transcription"
        item.text = text = await self._shared.engines.recognise(pcm)
        item.transcribed.set()
        mode = self._shared.behaviour.mode
        if self._transcription is None or mode is RealtimeMode.UNWRITTEN:
            return
        where = {"item_id": item.id, "content_index": 0}
        if mode is RealtimeMode.DEAF:
            error = {"type": "transcription_error", "code": "audio_unintelligible", "message": "Could not transcribe."}
            await self._send(f"{name}.failed", **where, error=error)
            return
        await self._send(f"{name}.delta", **where, delta=text)
        usage = {"type": "duration", "seconds": round(len(pcm) / RATE_HZ, 2)}
        await self._send(f"{name}.completed", **where, transcript=text, usage=usage)

    # -- responses -------------------------------------------------------------------------------------------

    async def _respond(self, metadata: Any) -> None:
        """Start a response to the conversation. Raises `ClientError` if one is already being made."""
        if self._active is not None:
            raise ClientError(
                "conversation_already_has_active_response",
                f"Conversation already has an active response in progress: {self._active.id}. "
                "Wait until the response is finished before creating a new one.",
            )
        names = tuple(str(tool.get("name")) for tool in self._tools)
        number = len(self._shared.asked) + 1
        # The request is added at once, so that two sessions never get the same response number.
        self._shared.asked.append(ResponseRequest(self._instructions, (), names, number))
        response = self._active = _Response(self._new_id("resp"), number, metadata)
        await self._send("response.created", response=self.response_json(response, "in_progress"))
        response.task = self._spawn(self._make(response), "response")

    async def _cancel(self) -> None:
        """Cancel the current response. Raises `ClientError` if there is none."""
        response = self._active
        if response is None or response.task is None:
            raise ClientError("response_cancel_not_active", "Cancellation failed: no active response found")
        self._active = None
        response.task.cancel()
        await asyncio.gather(response.task, return_exceptions=True)
        await self._end(response, "cancelled", status_details={"type": "cancelled", "reason": "client_cancelled"})

    async def _make(self, response: _Response) -> None:
        mode = self._shared.behaviour.mode
        # A real model hears audio, whereas this server answers from text.
        for item in list(self._items):
            if item.spoken and item.role == "user":
                await item.transcribed.wait()
        known = tuple((item.role or item.type, item.text) for item in self._items)
        begun = self._shared.asked[response.number - 1]
        asked = ResponseRequest(begun.instructions, known, begun.tools, begun.number)
        self._shared.asked[response.number - 1] = asked
        if mode is RealtimeMode.STALL:
            await asyncio.Event().wait()
        if mode in {RealtimeMode.FAIL_RESPONSE, RealtimeMode.RATE_LIMITED}:
            code = "insufficient_quota" if mode is RealtimeMode.RATE_LIMITED else "server_error"
            await self._end(
                response, "failed", status_details={"type": "failed", "error": {"type": code, "code": code}}
            )
            return
        limits = [{"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 60.0}]
        await self._send("rate_limits.updated", rate_limits=limits)
        answered = await self._shared.engines.answer(asked)
        item = ServerItem(self._new_id(), "message", "assistant", text=str(answered), spoken=True)
        if isinstance(answered, FunctionCall):
            item = ServerItem(item.id, "function_call", text=answered.arguments, name=answered.name)
            item.call_id = self._new_id("call")
            await self._call(response, item)
        elif not await self._say(response, item):
            return
        await self._end(response, "completed", output=[item.as_json()])

    async def _end(self, response: _Response, status: str, **more: Any) -> None:
        self._active = None
        await self._send("response.done", response=self.response_json(response, status, **more))

    async def _call(self, response: _Response, item: ServerItem) -> None:
        where = {"response_id": response.id, "output_index": 0}
        await self._send("response.output_item.added", **where, item=item.as_json(status="in_progress"))
        await self._add(item)
        place = {**where, "item_id": item.id, "call_id": item.call_id}
        await self._send("response.function_call_arguments.delta", **place, delta=item.text)
        await self._send("response.function_call_arguments.done", **place, name=item.name, arguments=item.text)
        await self._send("response.output_item.done", **where, item=item.as_json())

    async def _say(self, response: _Response, item: ServerItem) -> bool:
        """Stream one spoken message. Return False if the session ended before the message did."""
        pcm = await self._shared.engines.speak(item.text)
        where = {"response_id": response.id, "output_index": 0}
        empty = ServerItem(item.id, "message", "assistant")
        await self._send("response.output_item.added", **where, item=empty.as_json(status="in_progress"))
        await self._add(item, status="in_progress")
        place = {**where, "item_id": item.id, "content_index": 0}
        await self._send("response.content_part.added", **place, part={"type": "audio", "transcript": ""})
        deltas = [pcm[at : at + _DELTA] for at in range(0, len(pcm), _DELTA)]
        words = item.text.split(" ")
        sent_words = 0
        for number, delta in enumerate(deltas, start=1):
            until = len(words) * number // len(deltas)
            if until > sent_words:
                piece = ("" if sent_words == 0 else " ") + " ".join(words[sent_words:until])
                await self._send("response.output_audio_transcript.delta", **place, delta=piece)
                sent_words = until
            encoded = base64.b64encode(delta.tobytes()).decode()
            await self._send("response.output_audio.delta", **place, delta=encoded)
            item.audio_ms += len(delta) * 1000 // RATE_HZ
            if number > len(deltas) // 2 and await self._breaks_off(response):
                return False
        await self._send("response.output_audio.done", **place)
        await self._send("response.output_audio_transcript.done", **place, transcript=item.text)
        await self._send("response.content_part.done", **place, part={"type": "audio", "transcript": item.text})
        await self._send("response.output_item.done", **where, item=item.as_json())
        await self._send("conversation.item.done", previous_item_id=None, item=item.as_json())
        return True

    async def _breaks_off(self, response: _Response) -> bool:
        """End the session in the middle of a response if the behaviour asks for it. Return whether it was ended."""
        behaviour = self._shared.behaviour
        if behaviour.mode in {RealtimeMode.CUT, RealtimeMode.GONE}:
            await self.hang_up("", CLOSE_INTERNAL_ERROR)
            return True
        if behaviour.expires_in_response == response.number:
            await self.expire()
            return True
        return False

    def response_json(self, response: _Response, status: str, **more: Any) -> dict[str, Any]:
        made = {"id": response.id, "object": "realtime.response", "status": status, "metadata": response.metadata}
        return {**made, "status_details": None, "output": [], **more}

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = self._tasks.create_task(work, name=f"{self._id}-{name}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task


def _pcm(encoded: str) -> NDArray[np.int16]:
    try:
        return np.frombuffer(base64.b64decode(encoded, validate=True), dtype="<i2").astype(np.int16)
    except ValueError as error:
        raise ClientError("invalid_value", "Invalid 'audio': not base64 of 16-bit samples.", "audio") from error
