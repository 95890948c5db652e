"""Runs the /watch commands (`bot.discord.commands.watch`): link, stop, status and look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.tools.tool import ToolError
from bot.screen.messages import OPTED_OUT, ScreenError, ShareEnd
from bot.texts.text import Text, sentence_of

if TYPE_CHECKING:
    from bot.participation.guild_participation import GuildParticipations
    from bot.screen.room import RoomScreens
    from bot.screen.screens import Screens
    from bot.web.server import WebServer

NOT_HERE = Text("I am not in a voice channel here. Join one and use /join first.")


class WatchService:
    """The /watch commands of one process."""

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
        return self._screens.valid_s

    async def link(self, guild_id: int, user_id: int) -> str:
        """Return a link for this person to share a screen. Raises `BotError` with a plain sentence."""
        standing = await self._participation.of_guild(guild_id)
        if user_id in standing.opted_out:
            raise ScreenError(OPTED_OUT)
        token = self._screens.invite(guild_id, user_id)
        await self._web.start()
        return self._web.share_link(token)

    async def stop(self, guild_id: int, user_id: int, *, everybody: bool) -> int:
        """End one person's share or all shares; return how many ended. Raises `ScreenError`."""
        room = self._room(guild_id)
        wanted = room.sharers() if everybody else [sharer for sharer in [room.find(user_id)] if sharer is not None]
        for sharer in wanted:
            await room.end(sharer, ShareEnd.COMMAND)
        return len(wanted)

    def status(self, guild_id: int) -> Text:
        """Return plain sentences that say who shares what. Raises `ScreenError`."""
        return self._room(guild_id).status()

    async def look(self, guild_id: int, user_id: int, question: str, *, who: str | None) -> str:
        """Return what a shared screen shows now. Raises `ScreenError`, also if the person is not in the channel."""
        room = self._room(guild_id)
        room.require_present(user_id)
        try:
            return await room.look(question, who=who)
        except ToolError as error:
            raise ScreenError(sentence_of(error)) from error

    def _room(self, guild_id: int) -> RoomScreens:
        room = self._screens.room(guild_id)
        if room is None:
            raise ScreenError(self._screens.unavailable or NOT_HERE)
        return room
