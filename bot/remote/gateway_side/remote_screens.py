"""The shared screens of rooms in other processes, for the share pages and the /watch commands of the gateway process.

The screens themselves, their links and their readers are in the rooms' processes (`served_screens`). Here it is only
known which room a link and a page belong to.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bot.errors import BotError
from bot.remote.gateway_side.remote_page import RemotePage
from bot.remote.link.streams import Streams, new_ticket
from bot.remote.messages.screen_messages import (
    AdmitPage,
    AdmittedPage,
    DescribeShares,
    InviteSharer,
    LookAtScreen,
    PageTold,
    StopShares,
)
from bot.screen.messages import NO_ROOM_TO_SHARE_IN, ScreenError, ShareEnd
from bot.screen.screens import REFUSALS
from bot.texts.text import Text
from bot.web.port import NotAdmittedError
from voice.screen.share_link import MAX_OPEN_LINKS, LinkRefusal
from voice.secret_digest import digest_of_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bot.remote.link.message_link import MessageLink

# A room answers at once; ending a share writes its recap.
ASK_S: Final = 10.0
# More than a question about a screen takes: the model's time, and then the reader's (`bot.screen.readers`).
LOOK_S: Final = 60.0
AWAY = Text("The process that has your room does not answer. Try again in a moment.")


class RemoteScreens:
    """Implements `bot.web.port.SharePageHost` and `bot.screen.watch_service.WatchedScreens`.

    `streams`: what the listeners of rooms' processes let these open.
    """

    def __init__(self) -> None:
        self.streams = Streams()
        self._rooms: dict[int, MessageLink] = {}
        self._pages: dict[str, RemotePage] = {}
        # Digests of links' tokens and of pages' resume secrets -> server. The oldest are forgotten first.
        self._servers: dict[bytes, int] = {}

    @contextmanager
    def serve(self, guild_id: int, link: MessageLink) -> Iterator[None]:
        """Let people share in the room of a server, for the duration of the block. Its pages end with it."""
        link.handlers.hear(PageTold, self._on_told)
        self._rooms[guild_id] = link
        try:
            yield
        finally:
            if self._rooms.get(guild_id) is link:
                del self._rooms[guild_id]
            for page in self._pages.values():
                if page.room is link:
                    page.end(ShareEnd.BROKEN)

    def _on_told(self, told: PageTold) -> None:
        if (page := self._pages.get(told.page)) is not None:
            page.tell(told.message)

    # -- the commands -------------------------------------------------------------------------------------------------

    async def invite(self, guild_id: int, user_id: int) -> str:
        """See `WatchedScreens.invite`."""
        token = await self._room(guild_id).ask(InviteSharer(guild_id, user_id), within_s=ASK_S)
        self._remember(token, guild_id)
        return token

    async def stop(self, guild_id: int, user_id: int, *, everybody: bool) -> int:
        """See `WatchedScreens.stop`."""
        return await self._room(guild_id).ask(StopShares(guild_id, user_id, everybody), within_s=ASK_S)

    async def status(self, guild_id: int) -> Text:
        """See `WatchedScreens.status`."""
        return await self._room(guild_id).ask(DescribeShares(guild_id), within_s=ASK_S)

    async def look(self, guild_id: int, user_id: int, question: str, *, whose: int | None) -> Text:
        """See `WatchedScreens.look`."""
        return await self._room(guild_id).ask(LookAtScreen(guild_id, user_id, question, whose), within_s=LOOK_S)

    def _room(self, guild_id: int) -> MessageLink:
        link = self._rooms.get(guild_id)
        if link is None:
            raise ScreenError(NO_ROOM_TO_SHARE_IN)
        return link

    # -- the pages ----------------------------------------------------------------------------------------------------

    async def admit(self, token: str) -> RemotePage:
        """See `SharePageHost.admit`."""
        return await self._admit(token, resumes=False)

    async def readmit(self, resume_secret: str) -> RemotePage:
        """See `SharePageHost.readmit`."""
        return await self._admit(resume_secret, resumes=True)

    async def _admit(self, secret: str, *, resumes: bool) -> RemotePage:
        guild_id = self._servers.get(digest_of_secret(secret))
        link = None if guild_id is None else self._rooms.get(guild_id)
        if guild_id is None or link is None:
            reason = LinkRefusal.ENDED if resumes else LinkRefusal.FORGED
            raise NotAdmittedError(reason.value, REFUSALS[reason])
        # Known before it is admitted: the room tells it things at once.
        page = RemotePage(new_ticket(), link, self._forget)
        self._pages[page.ticket] = page
        self.streams.expect(page.ticket, page.serve_stream)
        try:
            answer = await link.ask(AdmitPage(page.ticket, secret, resumes), within_s=ASK_S)
        except BaseException as error:
            # The room may admit it all the same.
            page.disconnected()
            if not isinstance(error, BotError):
                raise
            raise NotAdmittedError("away", AWAY) from error
        if not isinstance(answer, AdmittedPage):
            self._forget(page)
            raise NotAdmittedError(answer.reason, answer.sentence)
        page.admitted = answer
        self._remember(answer.resume_secret, guild_id)
        return page

    def _forget(self, page: RemotePage) -> None:
        self._pages.pop(page.ticket, None)
        self.streams.forget(page.ticket)

    def _remember(self, secret: str, guild_id: int) -> None:
        while len(self._servers) >= 2 * MAX_OPEN_LINKS:
            del self._servers[next(iter(self._servers))]
        self._servers[digest_of_secret(secret)] = guild_id
