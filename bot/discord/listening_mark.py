"""The visible mark that the bot listens: a prefix of its name on the server, for which it needs Change Nickname.

A crash leaves the prefix behind; the next start removes it, in whichever language it was.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from bot.discord.posting import REQUEST_ERRORS, attempt
from bot.texts.text import Text, in_language, languages
from voice.cancellation import run_shielded

if TYPE_CHECKING:
    import discord

log = structlog.get_logger()

TIMEOUT_S = 5.0
# Recording bots use such a prefix. At the end of a name, Discord's list of people would cut it off.
MARK = Text("[LISTENING]")
# Discord's limit for a nickname.
MOST_CHARS = 32


def prefix_in(language: str) -> str:
    """Return what stands before the bot's name, in a Discord locale."""
    return f"{in_language(MARK, language)} "


def marked(name: str, language: str) -> str:
    """Return a name with the mark in a Discord locale, in the place of one in another."""
    return f"{prefix_in(language)}{unmarked(name) or ''}"[:MOST_CHARS]


def unmarked(nickname: str | None) -> str | None:
    """Return a nickname without the mark, in whichever language; None if nothing is left."""
    prefix = _prefix_of(nickname)
    return nickname if nickname is None or prefix is None else nickname[len(prefix) :] or None


def _prefix_of(nickname: str | None) -> str | None:
    """Return the mark with which a nickname begins, if it does."""
    return next((found for found in map(prefix_in, languages()) if (nickname or "").startswith(found)), None)


class ListeningMark:
    """The mark in one server. `show` and `remove` may be called again at any time; neither raises.

    *Cancellation* of either: it waits until Discord has answered, because nobody would know whether the mark is there.
    """

    def __init__(self) -> None:
        # The nickname before the mark. A crash loses it; then the marked name without the prefix is close enough.
        self._nickname: str | None = None
        self._named = False

    async def show(self, guild: discord.Guild, language: str) -> bool:
        """Mark the bot's name. Return whether it shows that the bot listens.

        `language`: what people there read, as a Discord locale.
        """
        return await run_shielded(self._show(guild, language), name=f"listening-mark-{guild.id}")

    async def remove(self, guild: discord.Guild) -> None:
        """Give the bot its name back, also after a crash of an earlier process."""
        await run_shielded(self._remove(guild), name=f"listening-mark-end-{guild.id}")

    async def _show(self, guild: discord.Guild, language: str) -> bool:
        me = guild.me
        shown = _prefix_of(me.display_name) if self._named else None
        if shown == prefix_in(language):
            return True
        # Without `_named` a prefix may be one that is being removed: the name is set again.
        nickname = unmarked(me.nick) if shown is None else self._nickname
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await me.edit(nick=marked(me.display_name, language))
        except REQUEST_ERRORS as error:
            log.info("name_not_marked", guild_id=guild.id, error_class=type(error).__name__)
            return False
        self._nickname, self._named = nickname, True
        return True

    async def _remove(self, guild: discord.Guild) -> None:
        me = guild.me
        if self._named or _prefix_of(me.display_name) is not None:
            nickname = self._nickname if self._named else unmarked(me.nick)
            request = me.edit(nick=None if nickname == (me.global_name or me.name) else nickname)
            await attempt(request, None, event="name_still_marked", within_s=TIMEOUT_S, guild_id=guild.id)
            self._named = False
