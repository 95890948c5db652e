"""Runs the /watch commands (`bot.discord.commands.watch`): link, stop, status and look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from bot.screen.messages import OPTED_OUT, ScreenError
from bot.screen.screens import LINK_VALID_S

if TYPE_CHECKING:
    from bot.participation.all_guilds import GuildParticipations
    from bot.texts.text import Text
    from bot.web.server import WebServer


class WatchedScreens(Protocol):
    """The shared screens of the rooms, wherever these run. All methods raise `BotError` with a plain sentence."""

    async def invite(self, guild_id: int, user_id: int) -> str:
        """Return the token of a link for this person."""

    async def stop(self, guild_id: int, user_id: int, *, everybody: bool) -> int:
        """End one person's share or all shares; return how many ended."""

    async def status(self, guild_id: int) -> Text:
        """Return plain sentences that say who shares what."""

    async def look(self, guild_id: int, user_id: int, question: str, *, whose: int | None) -> Text:
        """Return what a shared screen shows now. The person must be in the channel. `whose`: the id of who shares it;
        None: the only one.
        """


class WatchService:
    """The /watch commands of one process."""

    def __init__(self, screens: WatchedScreens, web: WebServer, participation: GuildParticipations) -> None:
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
        """Return a link for this person to share a screen. Raises `BotError` with a plain sentence."""
        guild = await self._participation.of_guild(guild_id)
        if user_id in guild.opted_out:
            raise ScreenError(OPTED_OUT)
        token = await self._screens.invite(guild_id, user_id)
        await self._web.start()
        return self._web.share_link(token)

    async def stop(self, guild_id: int, user_id: int, *, everybody: bool) -> int:
        """End one person's share or all shares; return how many ended. Raises `BotError`."""
        return await self._screens.stop(guild_id, user_id, everybody=everybody)

    async def status(self, guild_id: int) -> Text:
        """Return plain sentences that say who shares what. Raises `BotError`."""
        return await self._screens.status(guild_id)

    async def look(self, guild_id: int, user_id: int, question: str, *, whose: int | None) -> Text:
        """Return what a shared screen shows now. Raises `BotError`, also if the person is not in the channel."""
        return await self._screens.look(guild_id, user_id, question, whose=whose)
