"""The visible mark that the bot listens: a prefix of its name on the server, else the voice channel's status.

The name needs the permission Change Nickname, the status Set Voice Channel Status. A crash leaves the prefix behind;
the next start removes it (`remove_leftover`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import discord
import structlog

from bot.discord.request_errors import REQUEST_ERRORS
from voice.shielded import run_shielded

if TYPE_CHECKING:
    from voice.transport.discord_gateway import VoiceChannel

log = structlog.get_logger()

TIMEOUT_S = 5.0
# Recording bots use such a prefix. At the end of a name, Discord's list of people would cut it off.
PREFIX = "[LISTENING] "
STATUS = "{name} is listening"
# Discord's limit for a nickname.
MOST_CHARS = 32


def marked(name: str) -> str:
    """Return a name with the mark."""
    return name if name.startswith(PREFIX) else f"{PREFIX}{name}"[:MOST_CHARS]


def unmarked(nickname: str | None) -> str | None:
    """Return a nickname without the mark; None if nothing is left."""
    if nickname is None or not nickname.startswith(PREFIX):
        return nickname
    return nickname[len(PREFIX) :] or None


class ListeningMark:
    """The mark in one server. `show` and `remove` may be called again at any time; neither raises.

    *Cancellation* of either: it waits until Discord has answered, because nobody would know whether the mark is there.
    """

    def __init__(self) -> None:
        # The nickname before the mark. A crash loses it; then the marked name without the prefix is close enough.
        self._nickname: str | None = None
        self._named = False
        self._status_of: VoiceChannel | None = None

    async def show(self, channel: VoiceChannel) -> bool:
        """Mark the bot's name, or else the status of `channel`. Return whether one of them shows that it listens."""
        return await run_shielded(self._show(channel), name=f"listening-mark-{channel.guild.id}")

    async def remove(self, channel: VoiceChannel) -> None:
        """Give the bot its name back, and clear the status if it was set."""
        await run_shielded(self._remove(channel), name=f"listening-mark-end-{channel.guild.id}")

    async def _show(self, channel: VoiceChannel) -> bool:
        me = channel.guild.me
        if self._named and me.display_name.startswith(PREFIX):
            return True
        # Without `_named` a prefix may be one that is being removed: the name is set again.
        nickname = unmarked(me.nick)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await me.edit(nick=marked(me.display_name))
        except REQUEST_ERRORS as error:
            log.info("name_not_marked", guild_id=channel.guild.id, error_class=type(error).__name__)
            return await self._show_status(channel)
        self._nickname, self._named = nickname, True
        return True

    async def _show_status(self, channel: VoiceChannel) -> bool:
        if not isinstance(channel, discord.VoiceChannel):
            return False
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await channel.edit(status=STATUS.format(name=channel.guild.me.display_name))
        except REQUEST_ERRORS as error:
            log.warning("listening_not_shown", guild_id=channel.guild.id, error_class=type(error).__name__)
            return False
        self._status_of = channel
        return True

    async def _remove(self, channel: VoiceChannel) -> None:
        if self._named or channel.guild.me.display_name.startswith(PREFIX):
            nickname = self._nickname if self._named else unmarked(channel.guild.me.nick)
            await _rename(channel.guild.me, nickname)
            self._named = False
        if (status_of := self._status_of) is not None and isinstance(status_of, discord.VoiceChannel):
            self._status_of = None
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    await status_of.edit(status=None)
            except REQUEST_ERRORS as error:
                log.warning("status_not_cleared", guild_id=channel.guild.id, error_class=type(error).__name__)


async def remove_leftover(me: discord.Member) -> None:
    """Remove a mark that a crashed process left behind."""
    if me.nick is not None and me.nick.startswith(PREFIX):
        await _rename(me, unmarked(me.nick))


async def _rename(me: discord.Member, nickname: str | None) -> None:
    own = me.global_name or me.name
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await me.edit(nick=None if nickname == own else nickname)
    except REQUEST_ERRORS as error:
        log.warning("name_still_marked", guild_id=me.guild.id, error_class=type(error).__name__)
