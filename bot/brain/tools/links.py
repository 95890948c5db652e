"""The tool `post_link`: posts a link or a few words in the channel's chat, which is no more than an answer does.

It runs only for somebody in the channel who may write there themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.brain.tools.tool import RoomTool, ToolError
from bot.channel.port import ChatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.channel.port import Chat

MOST_URL_CHARS = 500
MOST_TEXT_CHARS = 500
_SCHEME = re.compile(r"\b([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_TRAILING_PUNCTUATION = ".,;:!?)]}>'\"”’*_"
# A masked link: Discord shows '[bank.example](https://evil.example)' as 'bank.example'.
_MASKED_LINK = re.compile(r"\]\s*\(")
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f<>]")

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "maxLength": MOST_URL_CHARS, "description": "The link, http or https."},
        "text": {"type": "string", "maxLength": MOST_TEXT_CHARS, "description": "What to write with or without it."},
    },
    "additionalProperties": False,
}


def link_tool(chat: Chat) -> RoomTool:
    """Return the tool for one room's chat."""

    async def post(arguments: Mapping[str, object]) -> str:
        text = post_text(str(arguments.get("url", "")), str(arguments.get("text", "")))
        try:
            await chat.post(text)
        except ChatError as error:
            raise ToolError(str(error)) from error
        return "It is posted in the channel's chat. Say so; don't read it out."

    return RoomTool(
        "post_link",
        "Posts a link or a few words in this channel's text chat. Use it only when the person who asks wants "
        "something posted, sent or written down there.",
        SCHEMA,
        post,
        asks=False,
    )


def post_text(url: str, text: str) -> str:
    """Return the message for a link and a text. Raises `ToolError` for masked links and schemes other than http(s)."""
    url, text = url.strip(), " ".join(text.split())
    if not url and not text:
        raise ToolError("There is nothing to post: give a url, a text, or both.")
    if any(found.lower() not in {"http", "https"} for found in _SCHEME.findall(text)):
        raise ToolError("Only http and https links can be posted.")
    message = "\n".join(part for part in (text, url) if part)
    if _MASKED_LINK.search(message):
        raise ToolError("Masked links can't be posted. Write the address itself.")
    for found in (url, *(each.rstrip(_TRAILING_PUNCTUATION) for each in _ADDRESS.findall(text))):
        if found:
            _check_url(found)
    return message


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        has_port = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ToolError(f"{url[:80]!r} is not a link.") from error
    if parts.scheme not in {"http", "https"} or not host or not has_port or _UNPRINTABLE.search(url):
        raise ToolError(f"{url[:80]!r} is not an http or https link.")
    if "@" in parts.netloc:
        # https://bank.example@evil.example leads to evil.example.
        raise ToolError("A link with a name before the host can't be posted.")
