"""The responses of one session of the local realtime server. They are made one at a time, streamed, cancelled or
failed.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rehearsal.servers.realtime_behaviour import FunctionCall, RealtimeMode, ResponseRequest
from rehearsal.servers.realtime_conversation import CLOSE_INTERNAL_ERROR, RATE_HZ, ClientError, ServerItem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from rehearsal.servers.realtime_behaviour import SharedState
    from rehearsal.servers.realtime_conversation import EventSender, ServerConversation

# Audio is sent in pieces of this length, faster than the audio plays, as the real server does.
DELTA_MS = 200
_DELTA = RATE_HZ * DELTA_MS // 1000


@dataclass(slots=True)
class ActiveResponse:
    """The response that is being made. `metadata`: from the request, for the client to tell responses apart."""

    id: str
    number: int
    metadata: Any = None
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class ServerSessionConfiguration:
    """The settings that a client changes with `session.update`."""

    instructions: str = "Be helpful."
    tools: list[dict[str, Any]] = field(default_factory=list)
    transcription: dict[str, Any] | None = None
    voice: str = "alloy"


class ResponseMaker:
    """Makes a session's responses. `spawn` runs a task that ends with the session; `expire` ends the session."""

    def __init__(
        self,
        shared: SharedState,
        conversation: ServerConversation,
        sender: EventSender,
        *,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
        expire: Callable[[], Awaitable[None]],
    ) -> None:
        self._shared = shared
        self._conversation = conversation
        self._sender = sender
        self._spawn = spawn
        self._expire = expire
        self._active: ActiveResponse | None = None

    async def begin(self, configuration: ServerSessionConfiguration, *, metadata: Any = None) -> None:
        """Start a response to the conversation. Raises `ClientError` if one is already being made."""
        if self._active is not None:
            raise ClientError(
                "conversation_already_has_active_response",
                f"Conversation already has an active response in progress: {self._active.id}. "
                "Wait until the response is finished before creating a new one.",
            )
        number = len(self._shared.asked) + 1
        response = self._active = ActiveResponse(self._conversation.new_id("resp"), number, metadata)
        asked = ResponseRequest(
            configuration.instructions, (), tuple(str(tool.get("name")) for tool in configuration.tools), number
        )
        # The request is added at once, so that two sessions never get the same response number.
        self._shared.asked.append(asked)
        await self._sender.send("response.created", response=self._of(response, "in_progress"))
        response.task = self._spawn(self._make(response, asked), "response")

    async def cancel(self) -> None:
        """Cancel the current response. Raises `ClientError` if there is none."""
        response = self._active
        if response is None or response.task is None:
            raise ClientError("response_cancel_not_active", "Cancellation failed: no active response found")
        self._active = None
        response.task.cancel()
        await asyncio.gather(response.task, return_exceptions=True)
        details = {"type": "cancelled", "reason": "client_cancelled"}
        await self._sender.send("response.done", response=self._of(response, "cancelled", status_details=details))

    async def _make(self, response: ActiveResponse, asked: ResponseRequest) -> None:
        mode = self._shared.behaviour.mode
        await self._conversation.wait_until_transcribed()
        asked = ResponseRequest(
            asked.instructions,
            tuple((item.role or item.type, item.text) for item in self._conversation.items),
            asked.tools,
            asked.number,
        )
        self._shared.asked[asked.number - 1] = asked
        if mode is RealtimeMode.STALL:
            await asyncio.Event().wait()
        if mode in {RealtimeMode.FAIL_RESPONSE, RealtimeMode.RATE_LIMITED}:
            await self._fail(response, mode)
            return
        limits = [{"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 60.0}]
        await self._sender.send("rate_limits.updated", rate_limits=limits)
        answered = await self._shared.engines.answer(asked)
        item = await (
            self._call(response, answered) if isinstance(answered, FunctionCall) else self._say(response, answered)
        )
        if item is None:
            return
        self._active = None
        await self._sender.send("response.done", response=self._of(response, "completed", output=[item.as_json()]))

    async def _fail(self, response: ActiveResponse, mode: RealtimeMode) -> None:
        over = mode is RealtimeMode.RATE_LIMITED
        error = {
            "type": "insufficient_quota" if over else "server_error",
            "code": "insufficient_quota" if over else "server_error",
        }
        self._active = None
        await self._sender.send(
            "response.done",
            response=self._of(response, "failed", status_details={"type": "failed", "error": error}),
        )

    async def _call(self, response: ActiveResponse, called: FunctionCall) -> ServerItem:
        item = ServerItem(self._conversation.new_id(), "function_call", text=called.arguments, name=called.name)
        item.call_id = self._conversation.new_id("call")
        where = {"response_id": response.id, "output_index": 0}
        await self._sender.send("response.output_item.added", **where, item=item.as_json(status="in_progress"))
        await self._sender.add_item(self._conversation, item)
        place = {**where, "item_id": item.id, "call_id": item.call_id}
        await self._sender.send("response.function_call_arguments.delta", **place, delta=called.arguments)
        await self._sender.send(
            "response.function_call_arguments.done", **place, name=called.name, arguments=called.arguments
        )
        await self._sender.send("response.output_item.done", **where, item=item.as_json())
        return item

    async def _say(self, response: ActiveResponse, text: str) -> ServerItem | None:
        """Stream one spoken message. Return None if the session ended before the message did."""
        pcm = await self._shared.engines.speak(text)
        item = ServerItem(self._conversation.new_id(), "message", "assistant", text=text, spoken=True)
        where = {"response_id": response.id, "output_index": 0}
        empty = ServerItem(item.id, "message", "assistant")
        await self._sender.send("response.output_item.added", **where, item=empty.as_json(status="in_progress"))
        await self._sender.add_item(self._conversation, item, status="in_progress")
        place = {**where, "item_id": item.id, "content_index": 0}
        await self._sender.send("response.content_part.added", **place, part={"type": "audio", "transcript": ""})
        deltas = [pcm[at : at + _DELTA] for at in range(0, len(pcm), _DELTA)]
        words = text.split(" ")
        told = 0
        for number, delta in enumerate(deltas, start=1):
            until = len(words) * number // len(deltas)
            if until > told:
                piece = " ".join(words[told:until]) if told == 0 else " " + " ".join(words[told:until])
                await self._sender.send("response.output_audio_transcript.delta", **place, delta=piece)
                told = until
            encoded = base64.b64encode(delta.tobytes()).decode()
            await self._sender.send("response.output_audio.delta", **place, delta=encoded)
            item.audio_ms += len(delta) * 1000 // RATE_HZ
            if number > len(deltas) // 2 and await self._ends_session(response):
                return None
        await self._sender.send("response.output_audio.done", **place)
        await self._sender.send("response.output_audio_transcript.done", **place, transcript=text)
        await self._sender.send("response.content_part.done", **place, part={"type": "audio", "transcript": text})
        await self._sender.send("response.output_item.done", **where, item=item.as_json())
        await self._sender.send("conversation.item.done", previous_item_id=None, item=item.as_json())
        return item

    async def _ends_session(self, response: ActiveResponse) -> bool:
        """End the session in the middle of a response if the behaviour asks for it. Return whether it was ended."""
        behaviour = self._shared.behaviour
        if behaviour.mode in {RealtimeMode.CUT, RealtimeMode.GONE}:
            await self._sender.hang_up("", CLOSE_INTERNAL_ERROR)
            return True
        if behaviour.expires_in_response == response.number:
            await self._expire()
            return True
        return False

    def _of(self, response: ActiveResponse, status: str, **more: Any) -> dict[str, Any]:
        return {
            "id": response.id,
            "object": "realtime.response",
            "status": status,
            "status_details": None,
            "metadata": response.metadata,
            "output": [],
            **more,
        }
