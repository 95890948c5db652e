"""One share page of the gateway process, whose share is in a room's process. Implements `bot.web.port.PageConnection`.

What the page says goes over the link, except what it shares: that goes over a stream, in its order. There is one
picture on its way and one that waits. A newer one takes the place of the one that waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog
from aiohttp import WSMsgType

from bot.errors import BotError
from bot.remote.messages.screen_messages import PageGone, StopPage
from bot.screen.messages import END_MESSAGES, ShareEnd
from bot.screen.picture_intake import DROPPED
from bot.screen.sharer import PAGE_MESSAGES
from bot.web.port import PageClosedError, Welcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from aiohttp import web

    from bot.remote.link.message_link import MessageLink
    from bot.remote.messages.screen_messages import AdmittedPage

log = structlog.get_logger()

# A picture's way and its decoding, which is given up after three seconds. Then the room opens the stream again.
EXCHANGE_S: Final = 15.0
STOP_WITHIN_S: Final = 15.0


class RemotePage:
    """`ticket`: of its stream; it names the page. `room`: the link to its room. `on_gone`: called when the page's
    connection is over. Set `admitted` before anything but `tell`.
    """

    def __init__(self, ticket: str, room: MessageLink, on_gone: Callable[[RemotePage], None]) -> None:
        self.ticket = ticket
        self.room = room
        self.admitted: AdmittedPage | None = None
        self._on_gone = on_gone
        # The last one is why it ended. The oldest is dropped if too many wait, as in the room.
        self._outbox: deque[Mapping[str, object]] = deque(maxlen=PAGE_MESSAGES)
        self._told = asyncio.Event()
        self._ended = False
        self._gone = False
        self._surface: str | None = None
        self._picture: bytes | None = None
        self._repeated: bytes | None = None
        self._changed = asyncio.Event()
        self._stream: web.WebSocketResponse | None = None

    @property
    def welcome(self) -> Welcome:
        """See `PageConnection.welcome`."""
        told = self.admitted
        assert told is not None, "admitted"
        return Welcome(
            who=told.who,
            room=told.room,
            server=told.server,
            bot=told.bot,
            reading=told.reading,
            resume_secret=told.resume_secret,
            sharing=told.sharing,
            trouble=told.trouble,
        )

    @property
    def link(self) -> str:
        """See `PageConnection.link`."""
        assert self.admitted is not None, "admitted"
        return self.admitted.link

    # -- what the page does -----------------------------------------------------------------------------------------

    def start(self, surface: str) -> None:
        """See `PageConnection.start`."""
        self._refuse_after_end()
        # A picture that waits is of what was shared before.
        self._surface, self._picture = surface, None
        self._changed.set()

    async def picture(self, data: bytes) -> None:
        """See `PageConnection.picture`. What the room refuses, it tells the page itself."""
        self._refuse_after_end()
        self._picture = data
        self._changed.set()

    async def stop(self) -> None:
        """See `PageConnection.stop`."""
        if not self._ended:
            with suppress(BotError):
                await self.room.ask(StopPage(self.ticket), within_s=STOP_WITHIN_S)

    async def messages(self) -> AsyncIterator[Mapping[str, object]]:
        """See `PageConnection.messages`."""
        while True:
            while self._outbox:
                yield self._outbox.popleft()
            if self._ended:
                return
            self._told.clear()
            await self._told.wait()

    def disconnected(self) -> None:
        """See `PageConnection.disconnected`."""
        self._gone = True
        self._changed.set()
        self.room.tell(PageGone(self.ticket))
        self._on_gone(self)

    def _refuse_after_end(self) -> None:
        if self._ended:
            raise PageClosedError

    # -- what the room tells ------------------------------------------------------------------------------------------

    def tell(self, message: Mapping[str, object]) -> None:
        """Pass a message on to the page."""
        if self._ended:
            return
        self._outbox.append(message)
        self._ended = message.get("t") == "ended"
        self._told.set()
        self._changed.set()

    def end(self, ending: ShareEnd) -> None:
        """End the page from this side: its room is not there any more."""
        self.tell({"t": "ended", "reason": ending.value, "sentence": END_MESSAGES[ending]})

    # -- the stream ---------------------------------------------------------------------------------------------------

    async def serve_stream(self, socket: web.WebSocketResponse) -> None:
        """Send what is shared, until the page is gone or the room opens another stream."""
        self._stream = socket
        # Whoever had the stream before leaves it.
        self._changed.set()
        try:
            while self._stream is socket and not (self._gone or self._ended):
                self._changed.clear()
                if self._surface is not None:
                    await self._send_surface(socket)
                elif self._picture is not None:
                    await self._send_picture(socket)
                else:
                    await self._changed.wait()
        except (OSError, TimeoutError) as error:
            log.info("screen_stream_lost", error_class=type(error).__name__)

    async def _send_surface(self, socket: web.WebSocketResponse) -> None:
        surface, self._surface = self._surface, None
        assert surface is not None, "asked before"
        try:
            async with asyncio.timeout(EXCHANGE_S):
                await socket.send_str(surface)
                await _answer(socket)
        except (OSError, TimeoutError):
            if self._surface is None:
                self._surface = surface
            raise

    async def _send_picture(self, socket: web.WebSocketResponse) -> None:
        picture, self._picture = self._picture, None
        assert picture is not None, "asked before"
        try:
            async with asyncio.timeout(EXCHANGE_S):
                await socket.send_bytes(picture)
                await _answer(socket)
        except (OSError, TimeoutError):
            if self._picture is None and self._surface is None:
                # Once more, over the next stream.
                if picture is not self._repeated:
                    self._picture = self._repeated = picture
                else:
                    self.tell({"t": "refused", "reason": DROPPED})
            raise


async def _answer(socket: web.WebSocketResponse) -> None:
    """Wait until the room is done with what was sent last. Raises `ConnectionError`."""
    if (await socket.receive()).type is not WSMsgType.TEXT:
        raise ConnectionError
