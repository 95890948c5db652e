"""Posts a message: it mentions nobody unless that is wanted, none of its links unfolds, and it is there once, also if
Discord or the network was in trouble.
"""

from __future__ import annotations

import asyncio
import io
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp
import discord
import structlog

from bot.channel.port import ChatError
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


log = structlog.get_logger()

# discord.py passes on what aiohttp raises when a connection breaks in the middle of a request
# (`ServerDisconnectedError`, `ClientPayloadError`), which is no `OSError`. Discord may have carried out such a request.
# `RuntimeError` is aiohttp's "Session is closed": the client is ending, or has given up.
REQUEST_ERRORS = (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError, RuntimeError)
# Trouble of Discord's servers or of the network, after which another try may succeed. discord.py itself tries again
# after 500, 502 and 504 only.
PASSING_ERRORS = (discord.DiscordServerError, aiohttp.ClientError, OSError)
# How Discord answers about a server or a channel that is gone, or that the bot may not see.
UNSEEN = (discord.NotFound, discord.Forbidden)

T = TypeVar("T")
D = TypeVar("D")

# Discord's limit.
MESSAGE_CHARS = 2_000
WRITE_TIMEOUT_S = 10.0
# The pause before a message is sent again.
AGAIN_AFTER_S = 1.0
# Discord takes 25 characters.
_NONCE_BYTES = 8

NOT_TAKEN = Text("Discord did not accept my message in {channel}. Use /transcript to get what was said.")


def message_parts(text: str, *, most_chars: int = MESSAGE_CHARS) -> list[str]:
    """Return a text as messages that Discord takes, cut at the ends of lines or words. A text that fits is one."""
    parts: list[str] = []
    rest = text.strip()
    while len(rest) > most_chars:
        # White space behind a part needs no room in it.
        window = rest[: most_chars + 1]
        end = max(window.rfind("\n"), 0) or max(window.rfind(" "), 0) or most_chars
        parts.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*parts, rest]


async def post_message(
    channel: discord.abc.Messageable,
    text: str | None = None,
    *,
    file: tuple[str, bytes] | None = None,
    nonce: str | None = None,
    calls: int | None = None,
    **how: Any,
) -> discord.Message:
    """Post a message; try once more after trouble that may have passed. Raises `REQUEST_ERRORS`.

    With the same nonce Discord posts it only once, whatever became of the try before, and tells of the one that is
    there. `nonce`: one that the caller uses again. `calls`: whom a mention in it calls; None: nobody. `file`: the name
    and the content of what is attached. `how`: see `discord.abc.Messageable.send`. It has no time-out.
    """
    nobody = discord.AllowedMentions.none()
    called = nobody if calls is None else nobody.merge(discord.AllowedMentions(users=[discord.Object(calls)]))
    how |= {"nonce": nonce or secrets.token_hex(_NONCE_BYTES), "allowed_mentions": called}
    # Discord fetches an address to unfold it, and what somebody has slipped to the bot may be in one. An embed would be
    # hidden too.
    how["suppress_embeds"] = "embed" not in how

    async def send() -> discord.Message:
        # Anew for each try, because a try reads it to its end.
        attached: dict[str, Any] = {} if file is None else {"file": discord.File(io.BytesIO(file[1]), file[0])}
        sent: discord.Message = await channel.send(text, **how, **attached)
        return sent

    return await tried_twice(send, channel)


async def tried_twice(request: Callable[[], Awaitable[T]], channel: object) -> T:
    """Return what a request returns; make it once more after trouble that may have passed. Raises `REQUEST_ERRORS`."""
    try:
        return await request()
    except PASSING_ERRORS as error:
        log.info("message_sent_again", channel_id=getattr(channel, "id", None), error_class=type(error).__name__)
    await asyncio.sleep(AGAIN_AFTER_S)
    return await request()


async def post_text(
    channel: discord.abc.Messageable, text: str, *, view: discord.ui.View | None = None, **how: Any
) -> discord.Message:
    """Post a text in as many messages as it takes, and return the last, which has the buttons. `how`: of all of them.
    See `post_message`.
    """
    *others, last = message_parts(text)
    for part in others:
        await post_message(channel, part, **how)
    return await post_message(channel, last, view=view, **how)


@asynccontextmanager
async def within(limit_s: float, failure: Callable[[Exception], ChatError]) -> AsyncIterator[None]:
    """Let requests to Discord take so long. If one fails, or takes longer, raise what `failure` makes of it."""
    try:
        async with asyncio.timeout(limit_s):
            yield
    except REQUEST_ERRORS as error:
        raise failure(error) from error


async def attempt(
    request: Awaitable[T], instead: D, *, event: str, within_s: float = WRITE_TIMEOUT_S, **about: Any
) -> T | D:
    """Return what a request to Discord returns; if it fails or takes too long, log `event` and return `instead`.
    `about`: what else the log line has.
    """
    try:
        async with asyncio.timeout(within_s):
            return await request
    except REQUEST_ERRORS as error:
        log.warning(event, error_class=type(error).__name__, **about)
        return instead


async def unless_gone(
    request: Awaitable[T], instead: D, *, gone: tuple[type[discord.HTTPException], ...] = (discord.NotFound,)
) -> T | D:
    """Return what a request to Discord returns, or `instead` if Discord says that it is about something that is gone.
    `gone`: how Discord says so.
    """
    try:
        return await request
    except gone:
        return instead


def not_posted(forbidden: Text, channel: str) -> Callable[[Exception], ChatError]:
    """Return what says why something is not in a channel. `forbidden`: the sentence if the bot lacks a permission."""
    return lambda error: ChatError(
        (forbidden if isinstance(error, discord.Forbidden) else NOT_TAKEN).fill(channel=channel)
    )
