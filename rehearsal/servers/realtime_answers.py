"""The answers of one session of the local realtime server: made one at a time, streamed, broken off, failing so."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rehearsal.servers.conversation import RATE_HZ, ClientError, Item
from rehearsal.servers.realtime_conduct import Asked, Called, RealtimeMode
from rehearsal.servers.realtime_line import CLOSE_INTERNAL_ERROR

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from rehearsal.servers.conversation import Conversation
    from rehearsal.servers.realtime_conduct import Desk
    from rehearsal.servers.realtime_line import Line

# Sound leaves in pieces of so many milliseconds, faster than it plays, as from the real server.
DELTA_MS = 200
_DELTA = RATE_HZ * DELTA_MS // 1000


@dataclass(slots=True)
class Response:
    """One response in the making."""

    id: str
    number: int
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class Configuration:
    """What `session.update` sets."""

    instructions: str = "Be helpful."
    tools: list[dict[str, Any]] = field(default_factory=list)
    transcription: dict[str, Any] | None = None
    turn_detection: dict[str, Any] | None = field(default_factory=lambda: {"type": "server_vad"})
    voice: str = "alloy"


class Answers:
    """Makes a session's answers. `spawn` runs work that ends with the session, `expire` ends it."""

    def __init__(
        self,
        desk: Desk,
        talk: Conversation,
        line: Line,
        *,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
        expire: Callable[[], Awaitable[None]],
    ) -> None:
        self._desk = desk
        self._talk = talk
        self._line = line
        self._spawn = spawn
        self._expire = expire
        self._making: Response | None = None

    async def begin(self, configuration: Configuration) -> None:
        """Begin an answer to the conversation as it is. Raises `ClientError` where one is being made."""
        if self._making is not None:
            raise ClientError(
                "conversation_already_has_active_response",
                f"Conversation already has an active response in progress: {self._making.id}. "
                "Wait until the response is finished before creating a new one.",
            )
        number = len(self._desk.asked) + 1
        response = self._making = Response(self._talk.new_id("resp"), number)
        asked = Asked(
            configuration.instructions, (), tuple(str(tool.get("name")) for tool in configuration.tools), number
        )
        # Counted at once, so that two sessions don't share a number.
        self._desk.asked.append(asked)
        await self._line.send("response.created", response=self._of(response, "in_progress"))
        response.task = self._spawn(self._make(response, asked), "response")

    async def cancel(self, reason: str, *, quietly: bool = False) -> None:
        """Break the answer off. Raises `ClientError` where there is none, unless `quietly`."""
        response = self._making
        if response is None or response.task is None:
            if quietly:
                return
            raise ClientError("response_cancel_not_active", "Cancellation failed: no active response found")
        self._making = None
        response.task.cancel()
        await asyncio.gather(response.task, return_exceptions=True)
        details = {"type": "cancelled", "reason": reason}
        await self._line.send("response.done", response=self._of(response, "cancelled", status_details=details))

    async def _make(self, response: Response, asked: Asked) -> None:
        mode = self._desk.conduct.mode
        await self._talk.transcribed()
        asked = Asked(
            asked.instructions,
            tuple((item.role or item.type, item.text) for item in self._talk.items),
            asked.tools,
            asked.number,
        )
        self._desk.asked[asked.number - 1] = asked
        if mode is RealtimeMode.STALL:
            await asyncio.Event().wait()
        if mode in {RealtimeMode.FAIL_RESPONSE, RealtimeMode.RATE_LIMITED}:
            await self._fail(response, mode)
            return
        limits = [{"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 60.0}]
        await self._line.send("rate_limits.updated", rate_limits=limits)
        answered = await self._desk.engines.answer(asked)
        item = await (self._call(response, answered) if isinstance(answered, Called) else self._say(response, answered))
        if item is None:
            return
        self._making = None
        await self._line.send("response.done", response=self._of(response, "completed", output=[item.shown()]))

    async def _fail(self, response: Response, mode: RealtimeMode) -> None:
        over = mode is RealtimeMode.RATE_LIMITED
        error = {
            "type": "insufficient_quota" if over else "server_error",
            "code": "insufficient_quota" if over else "server_error",
        }
        self._making = None
        await self._line.send(
            "response.done",
            response=self._of(response, "failed", status_details={"type": "failed", "error": error}),
        )

    async def _call(self, response: Response, called: Called) -> Item:
        item = Item(self._talk.new_id(), "function_call", text=called.arguments, name=called.name)
        item.call_id = self._talk.new_id("call")
        where = {"response_id": response.id, "output_index": 0}
        await self._line.send("response.output_item.added", **where, item=item.shown(status="in_progress"))
        await self._line.added(self._talk, item)
        place = {**where, "item_id": item.id, "call_id": item.call_id}
        await self._line.send("response.function_call_arguments.delta", **place, delta=called.arguments)
        await self._line.send(
            "response.function_call_arguments.done", **place, name=called.name, arguments=called.arguments
        )
        await self._line.send("response.output_item.done", **where, item=item.shown())
        return item

    async def _say(self, response: Response, text: str) -> Item | None:
        """Stream one spoken message; None when the session did not live to its end."""
        pcm = await self._desk.engines.speak(text)
        item = Item(self._talk.new_id(), "message", "assistant", text=text, spoken=True)
        where = {"response_id": response.id, "output_index": 0}
        empty = Item(item.id, "message", "assistant")
        await self._line.send("response.output_item.added", **where, item=empty.shown(status="in_progress"))
        await self._line.added(self._talk, item, status="in_progress")
        place = {**where, "item_id": item.id, "content_index": 0}
        await self._line.send("response.content_part.added", **place, part={"type": "audio", "transcript": ""})
        deltas = [pcm[at : at + _DELTA] for at in range(0, len(pcm), _DELTA)]
        words = text.split(" ")
        told = 0
        for number, delta in enumerate(deltas, start=1):
            until = len(words) * number // len(deltas)
            if until > told:
                piece = " ".join(words[told:until]) if told == 0 else " " + " ".join(words[told:until])
                await self._line.send("response.output_audio_transcript.delta", **place, delta=piece)
                told = until
            encoded = base64.b64encode(delta.tobytes()).decode()
            await self._line.send("response.output_audio.delta", **place, delta=encoded)
            item.audio_ms += len(delta) * 1000 // RATE_HZ
            if number > len(deltas) // 2 and await self._ends_here(response):
                return None
        await self._line.send("response.output_audio.done", **place)
        await self._line.send("response.output_audio_transcript.done", **place, transcript=text)
        await self._line.send("response.content_part.done", **place, part={"type": "audio", "transcript": text})
        await self._line.send("response.output_item.done", **where, item=item.shown())
        await self._line.send("conversation.item.done", previous_item_id=None, item=item.shown())
        return item

    async def _ends_here(self, response: Response) -> bool:
        """End the session in the middle of an answer where the conduct wants it; return whether it did."""
        conduct = self._desk.conduct
        if conduct.mode in {RealtimeMode.CUT, RealtimeMode.GONE}:
            await self._line.hang_up("", CLOSE_INTERNAL_ERROR)
            return True
        if conduct.expires_in_response == response.number:
            await self._expire()
            return True
        return False

    def _of(self, response: Response, status: str, **more: Any) -> dict[str, Any]:
        return {
            "id": response.id,
            "object": "realtime.response",
            "status": status,
            "status_details": None,
            "output": [],
            **more,
        }
