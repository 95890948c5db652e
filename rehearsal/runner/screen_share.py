"""A person's screen share. It does what the bot's share page does in a browser.

It opens the link from `/watch start` and uses the page's websocket protocol, without any code of the bot. The pictures
come from files.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import aiohttp

from rehearsal.errors import PersonError
from rehearsal.waiting import Changes, cancel_and_wait

_LINK = re.compile(r"(https?://[^\s/<>]+)/share#([\w.-]+)")
# The bot serves its page on this machine.
_ANSWER_TIMEOUT_S = 20.0


class ScreenSharePage:
    """One screen share. Entering it opens the link and shares a window; leaving it closes the page.

    `message`: the bot's text that contains the link. Raises `PersonError` when the text has no link or the bot refuses.
    """

    def __init__(self, name: str, message: str) -> None:
        found = _LINK.search(message)
        if found is None:
            raise PersonError(f'{name} got no link to share a screen: "{message}"')
        self._name = name
        self._origin, self._token = found.groups()
        self._stack = AsyncExitStack()
        self._page: aiohttp.ClientWebSocketResponse
        self._notes = 0
        # Why the bot ended the share. Empty while the share lasts.
        self._ended = ""
        self._changes = Changes()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            try:
                http = await stack.enter_async_context(aiohttp.ClientSession())
                async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                    self._page = await stack.enter_async_context(
                        http.ws_connect(f"{self._origin}/share/socket", origin=self._origin)
                    )
                    await self._page.send_json({"t": "hello", "token": self._token})
                    answer = _message(await self._page.receive())
            except (aiohttp.ClientError, OSError, TimeoutError) as exc:
                raise PersonError(f"{self._name} could not open the page that shares screens ({exc}).") from exc
            if answer.get("t") != "welcome":
                raise PersonError(f"{self._name} may not share a screen: {answer.get('sentence', 'no reason given')}")
            await self._page.send_json({"t": "start", "surface": "window"})
            listening = asyncio.create_task(self._listen(), name="sharer")
            stack.push_async_callback(cancel_and_wait, listening)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def show(self, picture: bytes, *, timeout_s: float) -> bool:
        """Send a picture (JPEG, at most 1280 points wide). Return whether the bot made a note about the picture in
        time.

        Raises `PersonError` when the bot has ended the share.
        """
        before = self._notes
        self._refuse_after_end()
        try:
            await self._page.send_bytes(picture)
        except (aiohttp.ClientError, OSError) as exc:
            raise PersonError(f"{self._name}'s page lost the connection ({exc}).") from exc
        noted = await self._changes.until(lambda: self._notes > before or bool(self._ended), timeout_s=timeout_s)
        self._refuse_after_end()
        return noted

    async def stop(self) -> None:
        """Stop sharing, and wait until the bot has confirmed the end. Raises `PersonError` when it does not."""
        await self._page.send_json({"t": "stop"})
        if not await self._changes.until(lambda: bool(self._ended), timeout_s=_ANSWER_TIMEOUT_S):
            raise PersonError(f"{self._name} stopped sharing, and the bot did not confirm it.")

    def _refuse_after_end(self) -> None:
        if self._ended:
            raise PersonError(f"{self._name} shares no screen any more: {self._ended}")

    async def _listen(self) -> None:
        """Handle the bot's messages to the page until the bot closes the connection."""
        async for frame in self._page:
            message = _message(frame)
            if message.get("t") == "note":
                self._notes += 1
            elif message.get("t") == "ended":
                self._ended = str(message.get("sentence"))
            self._changes.tell()
        self._ended = self._ended or "the bot closed the connection"
        self._changes.tell()


def _message(frame: aiohttp.WSMessage) -> dict[str, Any]:
    """Return the fields of a text message, or an empty dict for any other message."""
    if frame.type is not aiohttp.WSMsgType.TEXT:
        return {}
    fields = json.loads(frame.data)
    return fields if isinstance(fields, dict) else {}
