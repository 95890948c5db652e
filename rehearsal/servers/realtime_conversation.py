"""The conversation of one Realtime session on the server: its items in order, and the events about them.

The rest of the protocol is in `rehearsal.servers.realtime`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

RATE_HZ = 24_000
CLOSE_GOING_AWAY = 1001
CLOSE_INTERNAL_ERROR = 1011
# The real server refuses a commit of less audio than this.
MIN_COMMIT_MS = 100


class ClientError(Exception):
    """The client made a mistake. The server sends an `error` event, and the session continues."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


@dataclass(slots=True)
class ServerItem:
    """One item of the conversation. For spoken input, `text` is complete once `transcribed` is set."""

    id: str
    type: str
    role: str = ""
    text: str = ""
    spoken: bool = False
    transcribed: asyncio.Event = field(default_factory=asyncio.Event)
    # How much audio of an answer was sent, in milliseconds.
    audio_ms: int = 0
    call_id: str = ""
    name: str = ""

    def as_json(self, *, status: str = "completed") -> dict[str, Any]:
        """Return the item as the protocol sends it, without audio."""
        head = {"id": self.id, "object": "realtime.item", "type": self.type, "status": status}
        if self.type == "function_call":
            return {**head, "call_id": self.call_id, "name": self.name, "arguments": self.text}
        if self.type == "function_call_output":
            return {**head, "call_id": self.call_id, "output": self.text}
        return {**head, "role": self.role, "content": [self._content()] if self.text or self.spoken else []}

    def _content(self) -> dict[str, Any]:
        if self.role == "assistant":
            if self.spoken:
                return {"type": "output_audio", "transcript": self.text}
            return {"type": "output_text", "text": self.text}
        if self.spoken:
            return {"type": "input_audio", "transcript": self.text or None}
        return {"type": "input_text", "text": self.text}


class ServerConversation:
    """The items of one session, in order."""

    def __init__(self) -> None:
        self.items: list[ServerItem] = []
        self._numbers = itertools.count(1)

    def new_id(self, kind: str = "item") -> str:
        """Return an id that is new in this session."""
        return f"{kind}_{next(self._numbers):06d}"

    def add(self, item: ServerItem) -> str | None:
        """Add an item at the end. Return the id of the item before it. Raises `ClientError`."""
        if any(item.id == other.id for other in self.items):
            raise ClientError("invalid_value", f"An item with id '{item.id}' already exists.", "item.id")
        self.items.append(item)
        return self.items[-2].id if len(self.items) > 1 else None

    def find(self, item_id: str) -> ServerItem:
        """Return an item. Raises `ClientError` if it does not exist."""
        return self.items[self._index(item_id)]

    def delete(self, item_id: str) -> None:
        """Delete an item. Raises `ClientError` if it does not exist."""
        del self.items[self._index(item_id)]

    def truncate(self, item_id: str, audio_end_ms: int) -> None:
        """Cut the audio and text of an answer at `audio_end_ms`. Raises `ClientError`."""
        item = self.find(item_id)
        if item.role != "assistant" or not item.spoken:
            raise ClientError("invalid_value", "Only assistant audio messages can be truncated.", "item_id")
        if audio_end_ms > item.audio_ms:
            raise ClientError(
                "invalid_value", f"Audio content of {item.audio_ms}ms is already shorter than {audio_end_ms}ms"
            )
        words = item.text.split()
        item.text = " ".join(words[: len(words) * audio_end_ms // max(1, item.audio_ms)])

    async def wait_until_transcribed(self) -> None:
        """Wait until all spoken input is text. A real model hears audio, whereas this server answers from text."""
        for item in list(self.items):
            if item.spoken and item.role == "user":
                await item.transcribed.wait()

    def tool_of(self, call_id: str) -> str:
        """Return the name of the tool that a call names, or an empty text for an unknown call."""
        calls = (item for item in self.items if item.type == "function_call" and item.call_id == call_id)
        return next((item.name for item in calls), "")

    def parse_item(self, given: Mapping[str, Any]) -> ServerItem:
        """Return the item that a client event describes. Raises `ClientError`."""
        kind = str(given.get("type"))
        item = ServerItem(str(given.get("id") or self.new_id()), kind)
        match kind:
            case "message":
                item.role = str(given.get("role"))
                item.text = _text_of(item.role, given.get("content") or ())
            case "function_call":
                item.call_id, item.name = str(given.get("call_id")), str(given.get("name"))
                item.text = str(given.get("arguments"))
            case "function_call_output":
                item.call_id, item.text = str(given.get("call_id")), str(given.get("output"))
                if not any(other.call_id == item.call_id for other in self.items):
                    raise ClientError("invalid_value", f"No function call has the id '{item.call_id}'.", "item.call_id")
            case _:
                raise ClientError("invalid_value", f"Invalid value: '{kind}'.", "item.type")
        return item

    def _index(self, item_id: str) -> int:
        for at, item in enumerate(self.items):
            if item.id == item_id:
                return at
        raise ClientError("item_not_found", f"Item with item_id '{item_id}' not found.", "item_id")


# The content types that a message of each role may have.
_CONTENT = {"user": {"input_text"}, "system": {"input_text"}, "assistant": {"output_text"}}


def _text_of(role: str, content: Sequence[Mapping[str, Any]]) -> str:
    allowed = _CONTENT.get(role)
    if allowed is None:
        raise ClientError("invalid_value", f"Invalid value: '{role}'.", "item.role")
    for each in content:
        if each.get("type") not in allowed:
            raise ClientError(
                "invalid_value",
                f"Invalid value: '{each.get('type')}'. Supported values are: {sorted(allowed)}.",
                "item.content[0].type",
            )
    return " ".join(str(each.get("text", "")) for each in content)


class EventSender:
    """Sends one session's numbered events. If the client has disconnected, nothing is sent: the reader ends the
    session.
    """

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._events = 0

    async def send(self, kind: str, **fields: Any) -> None:
        if self._socket.closed:
            return
        self._events += 1
        try:
            await self._socket.send_str(json.dumps({"type": kind, "event_id": f"event_{self._events:06d}", **fields}))
        except ConnectionResetError:
            return

    async def error(self, code: str, message: str, *, param: str | None = None, event_id: str | None = None) -> None:
        """Send an error event, for a mistake of the client or because the session is over."""
        error = {
            "type": "invalid_request_error",
            "code": code,
            "message": message,
            "param": param,
            "event_id": event_id,
        }
        await self.send("error", error=error)

    async def add_item(self, conversation: ServerConversation, item: ServerItem, *, status: str = "completed") -> None:
        """Add an item to the conversation and send its events. Raises `ClientError`."""
        before = conversation.add(item)
        await self.send("conversation.item.added", previous_item_id=before, item=item.as_json(status=status))
        if status == "completed":
            await self.send("conversation.item.done", previous_item_id=before, item=item.as_json())

    async def hang_up(self, reason: str, code: int = CLOSE_GOING_AWAY) -> None:
        await self._socket.close(code=code, message=reason.encode())
