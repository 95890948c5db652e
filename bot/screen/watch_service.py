"""Runs the /watch commands (`bot.discord.commands.watch`): link, stop, status and look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.tools.tool import ToolError
from bot.screen.messages import NO_ROOM_TO_SHARE_IN, OPTED_OUT, ScreenError, ShareEnd
from bot.screen.screens import LINK_VALID_S
from bot.texts.text import sentence_of

if TYPE_CHECKING:
    from bot.participation.all_guilds import GuildParticipations
    from bot.screen.room import RoomScreens
    from bot.screen.screens import Screens
    from bot.texts.text import Text
    from bot.web.server import WebServer


class WatchService:
    """The /watch commands of one process. All methods raise `BotError` with a plain sentence."""

    def __init__(self, screens: Screens, web: WebServer, participation: GuildParticipations) -> None:
        self._screens = screens
        self._web = web
        self._participation = participation

    @property
    def is_local(self) -> bool:
        """Return whether links work only on the bot's own machine."""
        return self._web.is_local

    @property
    def valid_s(self) -> float:
        """Return for how many seconds a link can be opened."""
        return LINK_VALID_S

    async def link(self, guild_id: int, user_id: int) -> str:
        """Return a link for this person to share a screen."""
        guild = await self._participation.of_guild(guild_id)
        if user_id in guild.opted_out:
            raise ScreenError(OPTED_OUT)
        token = self._screens.invite(guild_id, user_id)
        await self._web.start()
        return self._web.share_link(token)

    async def stop(self, guild_id: int, user_id: int, *, everybody: bool) -> int:
        """End one person's share or all shares; return how many ended."""
        room = self._room(guild_id)
        wanted = room.sharers() if everybody else [sharer for sharer in [room.find(user_id)] if sharer is not None]
        for sharer in wanted:
            await room.end(sharer, ShareEnd.COMMAND)
        return len(wanted)

    async def status(self, guild_id: int) -> Text:
        """Return plain sentences that say who shares what."""
        return self._room(guild_id).status()

    async def look(self, guild_id: int, user_id: int, question: str, *, whose: int | None) -> Text:
        """Return what a shared screen shows now. The person must be in the channel. `whose`: the id of who shares it;
        None: the only one.
        """
        room = self._room(guild_id)
        room.require_present(user_id)
        try:
            if whose is None:
                return await room.look(question, who=None, asker="somebody")
            return await room.look_at(whose, question, asker="somebody")
        except ToolError as error:
            raise ScreenError(sentence_of(error)) from error

    def _room(self, guild_id: int) -> RoomScreens:
        room = self._screens.room(guild_id)
        if room is None:
            raise ScreenError(NO_ROOM_TO_SHARE_IN)
        return room
