"""What a bot says of itself when it connects: its token, its shard and its intents.

Intents say which events a bot gets, and what it may ask for (Discord's reference, "Gateway Intents"). `payloads` leaves
out of a message what a bot may not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntFlag
from typing import Final

from rehearsal.discord.guild.spec import GuildSpec


def bot_of_token(guild: GuildSpec, token: object) -> int | None:
    """Return the id of the bot with this token (`ID.anything`), or None for a wrong token."""
    if not isinstance(token, str):
        return None
    text = token.removeprefix("Bot ").partition(".")[0]
    if not text.isascii() or not text.isdigit() or "." not in token or len(text) > 20:
        return None
    return int(text) if guild.is_bot(int(text)) else None


def shard_of(asked: object) -> tuple[int, int] | None:
    """Return the shard that a bot identifies as; None if there is no such shard."""
    if asked is None:
        return 0, 1
    if not isinstance(asked, list) or len(asked) != 2 or not all(type(each) is int for each in asked):
        return None
    number, count = asked
    return (number, count) if 0 <= number < count else None


class Intent(IntFlag):
    """The intents that decide about something here. Discord has more; a bot may ask for all of `KNOWN`."""

    GUILDS = 1 << 0
    GUILD_MEMBERS = 1 << 1
    GUILD_VOICE_STATES = 1 << 7
    GUILD_PRESENCES = 1 << 8
    GUILD_MESSAGES = 1 << 9
    MESSAGE_CONTENT = 1 << 15


# Bits 0 to 16, 20, 21, 24 and 25.
KNOWN: Final = (1 << 17) - 1 | 1 << 20 | 1 << 21 | 1 << 24 | 1 << 25
# Those that the owner of a bot must allow in the developer portal.
PRIVILEGED: Final = Intent.GUILD_MEMBERS | Intent.GUILD_PRESENCES | Intent.MESSAGE_CONTENT
# All that a bot gets without its owner's permission.
UNPRIVILEGED: Final = KNOWN & ~PRIVILEGED

_OF_GUILDS: Final = ("CHANNEL", "GUILD_ROLE", "THREAD")
# The intent that an event needs. The other events come to every bot.
_NEEDED: Mapping[str, Intent] = {
    "GUILD_CREATE": Intent.GUILDS,
    "GUILD_DELETE": Intent.GUILDS,
    **{f"{kind}_{change}": Intent.GUILDS for kind in _OF_GUILDS for change in ("CREATE", "UPDATE", "DELETE")},
    "GUILD_MEMBER_REMOVE": Intent.GUILD_MEMBERS,
    "GUILD_MEMBER_UPDATE": Intent.GUILD_MEMBERS,
    "VOICE_STATE_UPDATE": Intent.GUILD_VOICE_STATES,
    "MESSAGE_CREATE": Intent.GUILD_MESSAGES,
    "MESSAGE_UPDATE": Intent.GUILD_MESSAGES,
    "MESSAGE_DELETE": Intent.GUILD_MESSAGES,
}
# The bits of an application's flags that say which privileged intents its owner has allowed, for bots in few servers.
_APPLICATION_FLAGS: Mapping[Intent, int] = {
    Intent.GUILD_PRESENCES: 1 << 13,
    Intent.GUILD_MEMBERS: 1 << 15,
    Intent.MESSAGE_CONTENT: 1 << 19,
}


def gets(event: str, data: object, *, user_id: int, intents: int) -> bool:
    """Return whether a bot with these intents gets an event. Of a change of its own member it is always told."""
    needed = _NEEDED.get(event)
    if needed is None or needed & intents:
        return True
    return event == "GUILD_MEMBER_UPDATE" and isinstance(data, dict) and data["user"]["id"] == str(user_id)


def application_flags(allowed: int) -> int:
    """Return an application's flags for the privileged intents that its owner has allowed."""
    return sum(flag for intent, flag in _APPLICATION_FLAGS.items() if intent & allowed)
