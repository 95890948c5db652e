"""The service behind the /watch commands: links to the share page, and what is shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.tools.tool import ToolError
from bot.screen.messages import ScreenError, ShareEnd
from bot.screen.screens import LINK_VALID_S, Screens
from bot.texts.text import Text, sentence_of

if TYPE_CHECKING:
    from bot.web.server import WebServer


class WatchService:
    """The /watch commands of one process. All methods raise `BotError` with a plain sentence."""

    # For so many seconds a link can be opened.
    valid_s = LINK_VALID_S

    def __init__(self, screens: Screens, web: WebServer) -> None:
        self._screens = screens
        self._web = web

    @property
    def is_local(self) -> bool:
        """Return whether links work only on the bot's own machine."""
        return self._web.is_local

    async def link(self, guild_id: int, user_id: int) -> str:
        """Return a link for this person to share a screen."""
        token = self._screens.invite(guild_id, user_id)
        await self._web.start()
        return self._web.share_link(token)

    async def stop(self, guild_id: int, user_id: int, *, everybody: bool) -> int:
        """End one person's share or all shares; return how many ended."""
        room = self._screens.open_room(guild_id)
        wanted = [sharer for sharer in room.sharers() if everybody or sharer.person.id == user_id]
        for sharer in wanted:
            await room.end(sharer, ShareEnd.COMMAND)
        return len(wanted)

    async def status(self, guild_id: int) -> Text:
        """Return plain sentences that say who shares what."""
        return self._screens.open_room(guild_id).status()

    async def look(self, guild_id: int, user_id: int, question: str, *, whose: int | None) -> Text:
        """Return what a shared screen shows now. The person must be in the channel. `whose`: the id of who shares it;
        None: the only one.
        """
        room = self._screens.open_room(guild_id)
        room.require_present(user_id)
        try:
            return await room.look(question, user_id=whose, asker="somebody")
        except ToolError as error:
            raise ScreenError(sentence_of(error)) from error
