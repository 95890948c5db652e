"""One connection to the local realtime server. It reads client events and sends server events in the protocol's order.

The names and shapes of events are those of `openai.types.realtime` (the GA protocol). As with the real server, a
client's mistake is answered with an error event, and the session continues.
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import structlog
from aiohttp import WSMsgType, web

from rehearsal.servers.realtime_behaviour import RealtimeMode
from rehearsal.servers.realtime_conversation import (
    CLOSE_GOING_AWAY,
    CLOSE_INTERNAL_ERROR,
    MIN_COMMIT_MS,
    RATE_HZ,
    ClientError,
    EventSender,
    ServerConversation,
    ServerItem,
)
from rehearsal.servers.realtime_responses import ResponseMaker, ServerSessionConfiguration

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from numpy.typing import NDArray

    from rehearsal.servers.realtime_behaviour import SharedState


_log = structlog.get_logger()


class ServerSession:
    """One connection, which reads client events and sends server events.

    *Ownership*: `serve` owns the tasks that recognise, answer and wait for the expiry, and ends them with the session.
    """

    def __init__(self, shared: SharedState, socket: web.WebSocketResponse, *, model: str, number: int) -> None:
        self._shared = shared
        self._socket = socket
        self._sender = EventSender(socket)
        self._id = f"sess_{number:04d}"
        self._model = model
        self._configuration = ServerSessionConfiguration()
        self._conversation = ServerConversation()
        self._buffer = np.zeros(0, np.int16)
        self._tasks = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()
        self._responses = ResponseMaker(shared, self._conversation, self._sender, spawn=self._spawn, expire=self.expire)

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

    async def _handle_events(self) -> None:
        if self._shared.behaviour.mode is RealtimeMode.SILENT:
            async for _ in self._socket:
                continue
            return
        await self._sender.send("session.created", session=self._session_json())
        if self._shared.behaviour.mode is RealtimeMode.GARBAGE:
            await self._socket.send_str("<html>It works!</html>")
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                await self._handle_text(message.data)

    async def hang_up(self, reason: str, code: int = CLOSE_GOING_AWAY) -> None:
        await self._sender.hang_up(reason, code)

    async def expire(self) -> None:
        """End the session as the real server does after an hour: send an error event, then close."""
        message = "Your session hit the maximum duration of 60 minutes."
        await self._sender.error("session_expired", message)
        await self.hang_up(message)

    # -- client events ---------------------------------------------------------------------------------------

    async def _handle_text(self, text: str) -> None:
        try:
            event = json.loads(text)
        except ValueError:
            await self._sender.error("invalid_json", "We could not parse the JSON body of your request.")
            return
        self._shared.received.append(event)
        try:
            await self._handle(event)
        except ClientError as error:
            await self._sender.error(error.code, str(error), param=error.param, event_id=event.get("event_id"))

    async def _handle(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "session.update":
                self._configure(event.get("session") or {})
                await self._sender.send("session.updated", session=self._session_json())
            case "input_audio_buffer.append":
                self._buffer = np.concatenate([self._buffer, _pcm(event.get("audio", ""))])
            case "input_audio_buffer.commit":
                await self._commit()
            case "conversation.item.create":
                item = self._conversation.parse_item(event.get("item") or {})
                if item.type == "function_call_output":
                    self._shared.tools.append((self._conversation.tool_of(item.call_id), item.text))
                await self._sender.add_item(self._conversation, item)
            case "conversation.item.delete":
                self._conversation.delete(str(event.get("item_id")))
                await self._sender.send("conversation.item.deleted", item_id=event.get("item_id"))
            case "conversation.item.truncate":
                await self._truncate(str(event.get("item_id")), int(event.get("audio_end_ms", 0)))
            case "response.create":
                options = event.get("response") or {}
                await self._responses.begin(self._configuration, metadata=options.get("metadata"))
            case "response.cancel":
                await self._responses.cancel()
            case other:
                raise ClientError("invalid_value", f"Invalid value: '{other}'.", "type")

    def _configure(self, session: dict[str, Any]) -> None:
        if session.get("type") != "realtime":
            raise ClientError("missing_required_parameter", "Missing required parameter: 'session.type'.", "session")
        self._configuration.instructions = str(session.get("instructions", self._configuration.instructions))
        self._configuration.tools = list(session.get("tools", self._configuration.tools))
        heard = (session.get("audio") or {}).get("input") or {}
        for side in ("input", "output"):
            form = ((session.get("audio") or {}).get(side) or {}).get("format")
            if form is not None and form != {"type": "audio/pcm", "rate": RATE_HZ}:
                raise ClientError("invalid_value", "This server takes audio/pcm at 24000 alone.", "session.audio")
        if "transcription" in heard:
            self._configuration.transcription = heard["transcription"]
        if heard.get("turn_detection") is not None:
            raise ClientError("invalid_value", "This server takes no turn detection.", "session.audio.input")

    def _session_json(self) -> dict[str, Any]:
        pcm = {"type": "audio/pcm", "rate": RATE_HZ}
        return {
            "type": "realtime",
            "object": "realtime.session",
            "id": self._id,
            "model": self._model,
            "output_modalities": ["audio"],
            "instructions": self._configuration.instructions,
            "tools": self._configuration.tools,
            "audio": {
                "input": {
                    "format": pcm,
                    "transcription": self._configuration.transcription,
                    "turn_detection": None,
                },
                "output": {"format": pcm, "voice": self._configuration.voice},
            },
        }

    # -- audio -----------------------------------------------------------------------------------------------

    async def _commit(self) -> None:
        length_ms = len(self._buffer) * 1000 // RATE_HZ
        if length_ms < MIN_COMMIT_MS:
            raise ClientError(
                "input_audio_buffer_commit_empty",
                f"Error committing input audio buffer: buffer too small. Expected at least {MIN_COMMIT_MS}ms of "
                f"audio, but buffer only has {length_ms}ms of audio.",
            )
        pcm, self._buffer = self._buffer, self._buffer[:0]
        await self._take_speech(pcm, self._conversation.new_id())

    async def _take_speech(self, pcm: NDArray[np.int16], item_id: str) -> None:
        before = self._conversation.items[-1].id if self._conversation.items else None
        await self._sender.send("input_audio_buffer.committed", previous_item_id=before, item_id=item_id)
        item = ServerItem(item_id, "message", "user", spoken=True)
        await self._sender.add_item(self._conversation, item)
        self._spawn(self._transcribe(item, pcm), "transcription")

    async def _transcribe(self, item: ServerItem, pcm: NDArray[np.int16]) -> None:
        name = "conversation.item.input_audio_transcription"
        text = await self._shared.engines.recognise(pcm)
        item.text = text
        item.transcribed.set()
        if self._configuration.transcription is None or self._shared.behaviour.mode is RealtimeMode.UNWRITTEN:
            return
        if self._shared.behaviour.mode is RealtimeMode.DEAF:
            error = {"type": "transcription_error", "code": "audio_unintelligible", "message": "Could not transcribe."}
            await self._sender.send(f"{name}.failed", item_id=item.id, content_index=0, error=error)
            return
        await self._sender.send(f"{name}.delta", item_id=item.id, content_index=0, delta=text)
        usage = {"type": "duration", "seconds": round(len(pcm) / RATE_HZ, 2)}
        await self._sender.send(f"{name}.completed", item_id=item.id, content_index=0, transcript=text, usage=usage)

    async def _truncate(self, item_id: str, audio_end_ms: int) -> None:
        self._conversation.truncate(item_id, audio_end_ms)
        await self._sender.send(
            "conversation.item.truncated", item_id=item_id, content_index=0, audio_end_ms=audio_end_ms
        )

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
