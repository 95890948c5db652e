"""The tool `read_attachment`: text files that people dropped into the channel's chat, page by page.

Only this channel's, only the newest, only text, and only so large. What is in them is data.
"""

from __future__ import annotations

import codecs
import re
from datetime import datetime
from typing import TYPE_CHECKING

from bot.brain.tools.tool import MAX_CHARS, RoomTool, ToolError
from bot.channel.chat import ChatError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from bot.channel.chat import Chat, DroppedFile

# Who asks for 'that file' means one of the last few.
NEWEST = 10
# What is told of the file, and of the others, takes the rest of an output.
PAGE_CHARS = MAX_CHARS - 1_000
# Reading a file from Discord takes a second; a slow day some more.
TIMEOUT_S = 12.0
NOTHING = (
    "Nobody has dropped a file into this channel's chat lately, as far as I can see. Discord shows me files only of "
    "messages that mention me, unless the operator allows more."
)

_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/toml", "application/yaml")
# What Discord has no type for, or calls a stream of bytes.
_TEXT_NAME = re.compile(
    r"\.(txt|md|rst|log|csv|tsv|jsonl?|toml|ya?ml|xml|html?|css|ini|cfg|conf|srt|vtt|tex|diff|patch|sql|sh|lua|gd"
    r"|py|[jt]sx?|java|kt|c|h|cpp|hpp|cs|go|rs|rb|php)$",
    re.IGNORECASE,
)
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# More undecodable characters than this share, and it is no text.
_GARBLED_SHARE = 0.05

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "description": "The file's name or a part of it. Without: the newest."},
        "page": {"type": "integer", "minimum": 1, "description": f"Page of some {PAGE_CHARS} characters. Default 1."},
    },
    "additionalProperties": False,
}


def attachment_tool(chat: Chat, *, max_bytes: int, zone: tzinfo) -> RoomTool:
    """Return the tool for one room's chat. `zone`: whose clock times are told in."""

    async def read(arguments: Mapping[str, object]) -> str:
        wanted, page = arguments.get("file"), arguments.get("page", 1)
        assert isinstance(page, int), "the schema says so"
        try:
            files = await chat.files(most=NEWEST)
            if not files:
                return NOTHING
            file = _chosen(files, wanted if isinstance(wanted, str) else "")
            if file is None:
                return f"There is no file named {wanted!r}. {_listed(files, zone)}"
            if not _is_text(file):
                return f"{file.name} is no text file, so I can't read it. {_listed(files, zone)}"
            if file.size_bytes > max_bytes:
                return f"{file.name} is too large to read: {_size(file)}, more than {max_bytes // 1024} KB."
            text = as_text(await chat.fetch(file, max_bytes=max_bytes))
        except ChatError as error:
            raise ToolError(str(error)) from error
        if text is None:
            return f"What is in {file.name} is no text that I can read."
        others = [each for each in files if each is not file]
        return _page(file, text, page, zone) + (f"\n\n{_listed(others, zone)}" if others else "")

    return RoomTool(
        "read_attachment",
        "Reads a text file that somebody dropped into this channel's chat. Use it when somebody speaks of a file, a "
        "log, notes or a document they posted.",
        SCHEMA,
        read,
        timeout_s=TIMEOUT_S,
    )


def as_text(content: bytes) -> str | None:
    """Return bytes as text: UTF-8, or UTF-16 that says so. None where they are no text."""
    mark, encoding = next(
        ((mark, name) for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), (b"", "utf-8")
    )
    text = content[len(mark) :].decode(encoding, errors="replace")
    if "\0" in text or text.count("\ufffd") > _GARBLED_SHARE * len(text):
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _chosen(files: Sequence[DroppedFile], wanted: str) -> DroppedFile | None:
    """Return the file that is meant: by its name, or a part of it; of several the newest."""
    name = wanted.strip().casefold()
    exact = [file for file in files if file.name.casefold() == name]
    alike = [file for file in files if name in file.name.casefold()]
    return next(iter(exact or alike), None)


def _is_text(file: DroppedFile) -> bool:
    return file.content_type.startswith(_TEXT_TYPES) or bool(_TEXT_NAME.search(file.name))


def _page(file: DroppedFile, text: str, page: int, zone: tzinfo) -> str:
    pages = max(1, -(-len(text) // PAGE_CHARS))
    told = f"{_told(file, zone)}, page {min(page, pages)} of {pages}:"
    start = (min(page, pages) - 1) * PAGE_CHARS
    return f"{told}\n\n{text[start : start + PAGE_CHARS]}" if text.strip() else f"{_told(file, zone)} is empty."


def _listed(files: Sequence[DroppedFile], zone: tzinfo) -> str:
    return "Files in this chat, newest first: " + "; ".join(_told(file, zone) for file in files[:NEWEST]) + "."


def _told(file: DroppedFile, zone: tzinfo) -> str:
    at = datetime.fromtimestamp(file.at, zone)
    return f"{file.name[:80]} ({_size(file)}, dropped by {file.by[:40]} on {at:%Y-%m-%d at %H:%M})"


def _size(file: DroppedFile) -> str:
    return f"{file.size_bytes} bytes" if file.size_bytes < 1024 else f"{file.size_bytes // 1024} KB"
