"""What a bot says of itself when it connects: its token and its shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rehearsal.discord.guild.state import GuildState


def bot_of_token(state: GuildState, token: object) -> int | None:
    """Return the id of the bot with this token (`ID.anything`), or None for a wrong token."""
    if not isinstance(token, str):
        return None
    text = token.removeprefix("Bot ").partition(".")[0]
    if not text.isascii() or not text.isdigit() or "." not in token or len(text) > 20:
        return None
    return int(text) if state.guild.is_bot(int(text)) else None


def shard_of(asked: object) -> tuple[int, int] | None:
    """Return the shard that a bot identifies as; None if there is no such shard."""
    if asked is None:
        return 0, 1
    if not isinstance(asked, list) or len(asked) != 2 or not all(type(each) is int for each in asked):
        return None
    number, count = asked
    return (number, count) if 0 <= number < count else None
