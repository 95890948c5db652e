"""Posts a message: it mentions nobody, and is there once, also if Discord or the network was in trouble."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from typing import TYPE_CHECKING, Any

import discord
import structlog

from bot.channel.port import ChatError
from bot.discord.request_errors import PASSING_ERRORS
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger()

WRITE_TIMEOUT_S = 10.0
# The pause before a message is sent again.
AGAIN_AFTER_S = 1.0
# Discord takes 25 characters.
_NONCE_BYTES = 8

NOT_TAKEN = Text("Discord did not take what I wanted to post in {channel}. /transcript has what was said.")


async def post_message(
    channel: discord.abc.Messageable,
    text: str | None = None,
    *,
    file: Callable[[], discord.File] | None = None,
    nonce: str | None = None,
    **how: Any,
) -> discord.Message:
    """Post a message; try once more after trouble that may have passed. Raises `REQUEST_ERRORS`.

    With the same nonce Discord posts it only once, whatever became of the try before. `nonce`: one that the caller uses
    again. `file`: makes what is attached, anew for each try, because a try reads it to its end. `how`: see
    `discord.abc.Messageable.send`. It has no time-out.
    """
    how |= {"nonce": nonce or secrets.token_hex(_NONCE_BYTES), "allowed_mentions": discord.AllowedMentions.none()}

    async def send() -> discord.Message:
        attached: dict[str, Any] = {} if file is None else {"file": file()}
        sent: discord.Message = await channel.send(text, **how, **attached)
        return sent

    try:
        return await send()
    except PASSING_ERRORS as error:
        log.info("message_sent_again", channel_id=getattr(channel, "id", None), error_class=type(error).__name__)
    await asyncio.sleep(AGAIN_AFTER_S)
    return await send()


def nonce_of(text: str) -> str:
    """Return the nonce for a text that is posted once, however often it is tried."""
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * _NONCE_BYTES]


def not_posted(error: Exception, forbidden: Text, channel: str) -> ChatError:
    """Return why something is not in a channel. `forbidden`: the sentence if the bot lacks a permission for it."""
    sentence = forbidden if isinstance(error, discord.Forbidden) else NOT_TAKEN
    return ChatError(sentence.fill(channel=channel))
