"""The form of a bot's token, by which a wrong one is refused at once. Only Discord knows whether a token is valid."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from bot.errors import SetupError

if TYPE_CHECKING:
    from bot.settings import DiscordSettings

COPY_AGAIN = "Copy it again from the Bot page of the developer portal (Reset Token) into DISCORD_TOKEN."

_TOKEN = re.compile(r"([\w-]{20,})\.([\w-]{5,})\.([\w-]{20,})", re.ASCII)
# What else people copy from the developer portal: the pages General Information and OAuth2 have these.
_OTHER_THINGS = (
    (re.compile(r"\d{17,20}", re.ASCII), "It looks like the application's id."),
    (re.compile(r"[0-9a-f]{64}"), "It looks like the application's public key."),
    (re.compile(r"[\w-]{32}", re.ASCII), "It looks like the application's client secret."),
    (re.compile(r"Bot\s.*", re.DOTALL), "It begins with the word Bot, which is no part of it."),
)


def require_token(settings: DiscordSettings) -> str:
    """Return the bot's token. Raises `SetupError` if there is none, or if its form is wrong."""
    token = token_of(settings)
    if not token:
        raise SetupError("There is no bot token. Set DISCORD_TOKEN (or discord.token), see `roomtone doctor`.")
    fault = form_fault(settings)
    if fault is not None:
        raise SetupError(f"{fault} {COPY_AGAIN}")
    return token


def token_of(settings: DiscordSettings) -> str:
    """Return the token without blanks around it; empty if there is none."""
    return "" if settings.token is None else settings.token.get_secret_value().strip()


def form_fault(settings: DiscordSettings) -> str | None:
    """Return in sentences why the text cannot be a token, never with the text; None if it has the form of one.

    A local Discord (`discord.api_base`) takes any.
    """
    token = token_of(settings)
    match = _TOKEN.fullmatch(token)
    if settings.api_base or (match is not None and application_of(match[1]) is not None):
        return None
    fault = "DISCORD_TOKEN has not the form of a bot's token (three parts joined by dots)."
    guess = next((guess for form, guess in _OTHER_THINGS if form.fullmatch(token)), None)
    return fault if guess is None else f"{fault} {guess}"


def application_of(token: str) -> int | None:
    """Return the application's id, which the first part of a bot's token is in base64; None if it is no such token."""
    first = token.strip().split(".")[0]
    try:
        number = base64.b64decode(first + "=" * (-len(first) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return None
    return int(number) if number.isdecimal() and len(number) <= 20 else None
