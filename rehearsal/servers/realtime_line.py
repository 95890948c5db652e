"""The line to one client of the local realtime server: numbered events, errors, and the end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiohttp import web

    from rehearsal.servers.conversation import Conversation, Item

CLOSE_GOING_AWAY = 1001
CLOSE_INTERNAL_ERROR = 1011


class Line:
    """Sends one session's events. A client that went away is no error: the reader ends the session."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._events = 0

    async def send(self, kind: str, **fields: Any) -> None:
        """Send an event of this type."""
        if self._socket.closed:
            return
        self._events += 1
        try:
            await self._socket.send_str(json.dumps({"type": kind, "event_id": f"event_{self._events:06d}", **fields}))
        except ConnectionResetError:
            return

    async def error(self, code: str, message: str, *, param: str | None = None, event_id: str | None = None) -> None:
        """Tell the client of a mistake, or that the session is over."""
        error = {
            "type": "invalid_request_error",
            "code": code,
            "message": message,
            "param": param,
            "event_id": event_id,
        }
        await self.send("error", error=error)

    async def added(
        self, talk: Conversation, item: Item, *, after: str | None = None, status: str = "completed"
    ) -> None:
        """Put an item into the conversation and tell so. Raises `ClientError`."""
        before = talk.add(item, after=after)
        await self.send("conversation.item.added", previous_item_id=before, item=item.shown(status=status))
        if status == "completed":
            await self.send("conversation.item.done", previous_item_id=before, item=item.shown())

    async def hang_up(self, reason: str, code: int = CLOSE_GOING_AWAY) -> None:
        """Close the connection."""
        await self._socket.close(code=code, message=reason.encode())
