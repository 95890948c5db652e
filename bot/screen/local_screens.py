"""What the /watch commands do with the shared screens of this process's rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.tools.tool import ToolError
from bot.screen.messages import NO_ROOM_TO_SHARE_IN, ScreenError, ShareEnd
from bot.texts.text import Text, sentence_of

if TYPE_CHECKING:
    from bot.screen.room import RoomScreens
    from bot.screen.screens import Screens


class LocalScreens:
    """Implements `bot.screen.watch_service.WatchedScreens`."""

    def __init__(self, screens: Screens) -> None:
        self._screens = screens

    async def invite(self, guild_id: int, user_id: int) -> str:
        """Return the token of a link for this person. Raises `ScreenError`, as everything here does."""
        return self._screens.invite(guild_id, user_id)

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
        """Return what a shared screen shows now.

        Raises `ScreenError` if the person is not in the channel, or if the screen cannot be read.
        """
        room = self._room(guild_id)
        room.require_present(user_id)
        try:
            return await (room.look(question, who=None) if whose is None else room.look_at(whose, question))
        except ToolError as error:
            raise ScreenError(sentence_of(error)) from error

    def _room(self, guild_id: int) -> RoomScreens:
        room = self._screens.room(guild_id)
        if room is None:
            raise ScreenError(NO_ROOM_TO_SHARE_IN)
        return room
