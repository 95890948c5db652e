"""Serves the shared screens of a room's process to the gateway process: its commands, and its share pages.

A page is admitted, shares and ends here as if it were connected to this process: `bot.screen` does not know where the
page is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

import aiohttp
import structlog
from aiohttp import WSMsgType

from bot.remote.messages.screen_messages import (
    AdmitPage,
    AdmittedPage,
    DescribeShares,
    InviteSharer,
    LookAtScreen,
    PageGone,
    PageTold,
    RefusedPage,
    StopPage,
    StopShares,
)
from bot.texts.text import Text, sentence_of, verbatim
from bot.web.port import NotAdmittedError, PageClosedError
from voice.cancellation import fail_if_cancelled_inside
from voice.screen.frame import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from bot.remote.link.gateway_link import GatewayLink
    from bot.screen.watch_service import WatchedScreens
    from bot.web.port import PageConnection, SharePageHost

log = structlog.get_logger()

# Before a lost stream is opened again.
STREAM_PAUSE_S: Final = 1.0
# A picture is checked and decoded; a decoder that hangs is killed after three seconds.
TAKE_WITHIN_S: Final = 10.0
# Answers that the next picture may come.
DONE: Final = "done"
_NOT_FOUND: Final = 404


class ServedScreens:
    """An async context manager. `desk`: what commands do. `host`: admits pages. Make it before the link is opened.

    *Ownership*: it owns the tasks of its pages.
    """

    def __init__(self, desk: WatchedScreens, host: SharePageHost, link: GatewayLink) -> None:
        self._host = host
        self._link = link
        self._pages: dict[str, _ServedPage] = {}
        self._running: set[asyncio.Task[None]] = set()
        answer = link.handlers.answer
        answer(InviteSharer, lambda asked: desk.invite(asked.guild_id, asked.user_id))
        answer(StopShares, lambda asked: desk.stop(asked.guild_id, asked.user_id, everybody=asked.everybody))
        answer(DescribeShares, lambda asked: desk.status(asked.guild_id))
        answer(LookAtScreen, lambda asked: desk.look(asked.guild_id, asked.user_id, asked.question, whose=asked.whose))
        answer(AdmitPage, self._admit)
        answer(StopPage, self._stop)
        link.handlers.hear(PageGone, self._on_gone)
        # The gateway process has ended the pages of a link that was lost.
        link.on_opened(self._drop_pages)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._drop_pages()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _admit(self, asked: AdmitPage) -> AdmittedPage | RefusedPage:
        admit = self._host.readmit if asked.resumes else self._host.admit
        try:
            connection = await admit(asked.secret)
        except NotAdmittedError as error:
            return RefusedPage(error.reason, sentence_of(error))
        page = self._pages[asked.page] = _ServedPage(asked.page, connection, self._link, self._drop)
        self._running.add(page.running)
        page.running.add_done_callback(self._running.discard)
        welcome = connection.welcome
        return AdmittedPage(
            who=welcome.who,
            room=welcome.room,
            server=welcome.server,
            bot=welcome.bot,
            reading=welcome.reading,
            resume_secret=welcome.resume_secret,
            sharing=welcome.sharing,
            trouble=_as_text(welcome.trouble),
            link=connection.link,
        )

    async def _stop(self, asked: StopPage) -> None:
        if (page := self._pages.get(asked.page)) is not None:
            await page.connection.stop()

    def _on_gone(self, told: PageGone) -> None:
        self._drop(told.page)

    def _drop(self, ticket: str) -> None:
        if (page := self._pages.pop(ticket, None)) is not None:
            page.close()

    def _drop_pages(self) -> None:
        while self._pages:
            self._pages.popitem()[1].close()


class _ServedPage:
    """One page. `running`: its task, which ends with `close`. `drop`: closes a page that is not there any more."""

    def __init__(self, ticket: str, connection: PageConnection, link: GatewayLink, drop: Callable[[str], None]) -> None:
        self.connection = connection
        self._ticket = ticket
        self._link = link
        self._drop = drop
        self.running = asyncio.create_task(self._run(), name="screen-page")

    def close(self) -> None:
        """End the page's connection; its share waits for it to come back."""
        self.running.cancel()
        self.connection.disconnected()

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(fail_if_cancelled_inside(self._tell), name="screen-page-tell")
                tasks.create_task(fail_if_cancelled_inside(self._keep_stream), name="screen-page-stream")
        except Exception:
            log.exception("screen_page_crashed")
            await self.connection.stop()
            # What passed messages on has ended too. The last one tells the page that it shares no more.
            await self._tell()

    async def _tell(self) -> None:
        """Pass on what the share tells its page, until the share ends."""
        async for message in self.connection.messages():
            self._link.tell(PageTold(self._ticket, {name: _as_text(value) for name, value in message.items()}))

    async def _keep_stream(self) -> None:
        """Take what is shared, until the share ends."""
        while True:
            try:
                async with self._link.stream(self._ticket, most_bytes=MAX_FRAME_BYTES + 1) as stream:
                    await self._take(stream)
            except PageClosedError:
                return
            except aiohttp.WSServerHandshakeError as error:
                if error.status == _NOT_FOUND:
                    # It was gone before it was admitted.
                    self._drop(self._ticket)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                log.info("screen_stream_lost", error_class=type(error).__name__)
            await asyncio.sleep(STREAM_PAUSE_S)

    async def _take(self, stream: aiohttp.ClientWebSocketResponse) -> None:
        """Take pictures, one after the other. Raises `PageClosedError` when the share is over, and what a network
        raises.
        """
        while True:
            message = await stream.receive()
            match message.type:
                case WSMsgType.BINARY:
                    async with asyncio.timeout(TAKE_WITHIN_S):
                        await self.connection.picture(message.data)
                case WSMsgType.TEXT:
                    self.connection.start(message.data)
                case _:
                    raise ConnectionError
            await stream.send_str(DONE)


def _as_text(value: object) -> Text:
    return value if isinstance(value, Text) else verbatim(str(value))
