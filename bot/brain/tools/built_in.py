"""The built-in tools besides those of `memory`. All but one ask nobody first: they do no more than an answer does.

`read_attachment` reads text files that the person who asks has posted in the channel's chat: the newest, up to a size
limit. `read_attachment_of_others` reads those of other people, but of nobody who has opted out; it asks first.
`post_link` posts a link or a few words there. They run only for somebody in the channel who may read or write there
themselves. `look_at_screen` describes a shared screen. `be_quiet` silences the bot. `stop` ends what runs behind the
talk.
"""

from __future__ import annotations

import codecs
import re
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, urlsplit, urlunsplit

from bot.brain.tools.tool import MAX_CHARS, Asker, Result, RoomTool, ToolError, anybody, present
from bot.brain.wakeword import SILENT_MINUTES
from bot.channel.markdown import escape_markdown
from bot.channel.port import Chat, ChatError, DroppedFile
from bot.guild import MOST_SILENT_MINUTES
from compaction.budget.tool_outputs import FILE_LINE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from bot.brain.tools.frozen_calls import FrozenCalls

# How many of the newest files can be read. When people say 'that file', they mean one of these.
NEWEST = 10
# The size of a page. The rest of an output describes the file and lists the other files.
PAGE_CHARS = MAX_CHARS - 1_000
# Downloading a file from Discord takes about a second, sometimes more.
TIMEOUT_S = 12.0
NOTHING = (
    "No such file was dropped into this channel's chat lately, as far as I can see. Discord shows me files only of "
    "messages that mention me, unless the operator allows more. read_attachment has files of who asks, and "
    "read_attachment_of_others those of other people."
)
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/toml", "application/yaml")
# Text files for which Discord reports no type, or a binary one.
_TEXT_NAME = re.compile(
    r"\.(txt|md|rst|log|csv|tsv|jsonl?|toml|ya?ml|xml|html?|css|ini|cfg|conf|srt|vtt|tex|diff|patch|sql|sh|lua|gd"
    r"|py|[jt]sx?|java|kt|c|h|cpp|hpp|cs|go|rs|rb|php)$",
    re.IGNORECASE,
)
# A file with a larger share of undecodable characters is not text.
_GARBLED_SHARE = 0.05
_PAGE = {"type": "integer", "minimum": 1, "description": f"Page of some {PAGE_CHARS} characters. Default 1."}
FILE_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "description": "The file's name or a part of it. Without: the newest."},
        "page": _PAGE,
    },
    "additionalProperties": False,
}

MOST_POSTED_CHARS = 500
# What may stand in the rest of an address as it is. Brackets could be read as formatting.
_IN_ADDRESS = "/:?#@!$&'*+,;=~%"
# The name of a host in ASCII, or the address of one.
_HOST = re.compile(r"[a-z0-9.-]+|[0-9a-f:]+")
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f<>]")
LINK_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "maxLength": MOST_POSTED_CHARS, "description": "The link, http or https."},
        "text": {"type": "string", "maxLength": MOST_POSTED_CHARS, "description": "What to write with or without it."},
    },
    "additionalProperties": False,
}

# A vision model may have to be waited for.
SCREEN_TIMEOUT_S = 15.0
SCREEN_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "maxLength": 300, "description": "What to look for on the screen."},
        "who": {"type": "string", "maxLength": 100, "description": "Whose screen: a name. Without: the one shared."},
    },
    "required": ["question"],
    "additionalProperties": False,
}
QUIET_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "minutes": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_SILENT_MINUTES,
            "description": f"How long. Default {SILENT_MINUTES}.",
        }
    },
    "additionalProperties": False,
}
STOP_SCHEMA: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}


class _NoFileError(ToolError):
    """There is nothing to read. The message says why, and what there is."""


def reads_chat(asker: Asker) -> bool:
    """Return whether somebody may read what is in the channel's chat. `Chat` says it better to who asks."""
    return asker.reads_chat


def attachment_tools(
    chat: Chat, asker: Asker, *, max_bytes: int, zone: tzinfo, withheld: Callable[[], Collection[str]] = tuple
) -> tuple[RoomTool, RoomTool]:
    """Return the tools for one room's chat: for files of `asker`, and for those of others. `zone`: time zone of the
    times in their output. `withheld`: returns the ids of people who have opted out: a model learns neither of their
    files nor their names.
    """

    # By id, for calls that wait for a press: what is read then is what the card has shown.
    chosen: dict[str, DroppedFile] = {}

    async def choose(arguments: Mapping[str, object], *, own: bool) -> tuple[DroppedFile, Sequence[DroppedFile]]:
        """Return the file that is meant, and the other ones. Raises `ToolError`."""
        name = str(arguments.get("file", ""))
        try:
            found, withheld_ids = await chat.files(most=NEWEST), withheld()
        except ChatError as error:
            raise ToolError(str(error)) from error
        files = [file for file in found if (file.by_id == asker.user_id) is own and str(file.by_id) not in withheld_ids]
        if not files:
            raise _NoFileError(NOTHING)
        wanted = name.strip().casefold()
        matching = [file for file in files if wanted in file.name.casefold()]
        file = min(matching, key=lambda file: file.name.casefold() != wanted, default=None)
        if file is None:
            raise _NoFileError(f"There is no file named {name!r}. {_list_files(files, zone)}")
        if not (file.content_type.startswith(_TEXT_TYPES) or _TEXT_NAME.search(file.name)):
            raise _NoFileError(f"{file.name} is not a text file, so I can't read it. {_list_files(files, zone)}")
        if file.size_bytes > max_bytes:
            raise _NoFileError(f"{file.name} is too large to read: {_size(file)}, more than {max_bytes // 1024} KB.")
        return file, [each for each in files if each is not file]

    async def read(file: DroppedFile, page: object) -> str:
        assert isinstance(page, int), "the schema says so"
        try:
            text = as_text(await chat.fetch(file, max_bytes=max_bytes))
        except ChatError as error:
            raise ToolError(str(error)) from error
        if text is None:
            raise _NoFileError(f"{file.name} holds no text that I can read.")
        if not text.strip():
            return f"{_heading(file, zone)} is empty."
        pages = max(1, -(-len(text) // PAGE_CHARS))
        page = min(page, pages)
        shown = text[(page - 1) * PAGE_CHARS : page * PAGE_CHARS]
        return f"{_heading(file, zone)}, page {page} of {pages}:\n\n{shown}"

    async def read_own(arguments: Mapping[str, object]) -> Result:
        try:
            file, others = await choose(arguments, own=True)
            found = await read(file, arguments.get("page", 1))
        except _NoFileError as error:
            # An answer too.
            return Result(str(error), reads_chat)
        return Result(found + (f"\n\n{_list_files(others, zone)}" if others else ""), reads_chat)

    async def fix(arguments: Mapping[str, object]) -> Mapping[str, object]:
        file, _ = await choose(arguments, own=False)
        chosen[str(file.id)] = file
        what = {"file": file.name, "id": str(file.id), "by": file.by, "size": _size(file)}
        return {**what, "page": arguments.get("page", 1)}

    async def read_fixed(arguments: Mapping[str, object]) -> Result:
        file = chosen[str(arguments["id"])]
        if str(file.by_id) in withheld():
            raise _NoFileError(NOTHING)
        return Result(await read(file, arguments["page"]), reads_chat)

    return (
        RoomTool(
            "read_attachment",
            "Reads a text file that who asks has dropped into this channel's chat. Use it when they speak of a file, a "
            "log, notes or a document that they posted themselves.",
            FILE_SCHEMA,
            read_own,
            asks=False,
            acts=False,
            lets="read text files that were dropped into the channel's chat",
            timeout_s=TIMEOUT_S,
        ),
        RoomTool(
            "read_attachment_of_others",
            "Reads a text file that somebody else has dropped into this channel's chat. Use it when who asks speaks of "
            "a file, a log, notes or a document of another person.",
            # The card with the buttons shows the arguments, so one of them is which file is read.
            {
                **FILE_SCHEMA,
                "properties": {
                    "file": {"type": "string", "minLength": 1, "description": "The file's name or a part of it."},
                    "page": _PAGE,
                },
                "required": ["file"],
            },
            read_fixed,
            fix=fix,
            timeout_s=TIMEOUT_S,
        ),
    )


def as_text(content: bytes) -> str | None:
    """Decode UTF-8, or UTF-16 with a byte order mark. Returns None if it is not text."""
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if is_utf16 else "utf-8-sig", errors="replace")
    if "\0" in text or text.count("\ufffd") > _GARBLED_SHARE * len(text):
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _list_files(files: Sequence[DroppedFile], zone: tzinfo) -> str:
    return "Files in this chat, newest first: " + "; ".join(_describe(file, zone) for file in files[:NEWEST]) + "."


def _heading(file: DroppedFile, zone: tzinfo) -> str:
    """Return the first lines of an output that holds a file. The budget keeps it while people speak of that file."""
    return f"{FILE_LINE}{file.name[:80]}\n{_describe(file, zone)}"


def _describe(file: DroppedFile, zone: tzinfo) -> str:
    at = datetime.fromtimestamp(file.at, zone)
    return f"{file.name[:80]} ({_size(file)}, dropped by {file.by[:40]} on {at:%Y-%m-%d at %H:%M})"


def _size(file: DroppedFile) -> str:
    return f"{file.size_bytes} bytes" if file.size_bytes < 1024 else f"{file.size_bytes // 1024} KB"


def link_tool(chat: Chat) -> RoomTool:
    """Return the tool for one room's chat. What it does is no more than an answer does, so it asks nobody first."""

    async def post(arguments: Mapping[str, object]) -> Result:
        try:
            await chat.post(post_text(str(arguments.get("url", "")), str(arguments.get("text", ""))))
        except ChatError as error:
            raise ToolError(str(error)) from error
        return Result("It is posted in the channel's chat. Say so; don't read it out.", present)

    return RoomTool(
        "post_link",
        "Posts a link or a few words in this channel's text chat. Use it only when the person who asks wants "
        "something posted, sent or written down there, and once for a question.",
        LINK_SCHEMA,
        post,
        asks=False,
        once=True,
        lets="post a link or a few words in the channel's chat",
    )


def post_text(url: str, text: str) -> str:
    """Return the message for a link and a text, in which nothing but the link is more than text. Raises `ToolError`."""
    message = "\n".join(filter(None, (escape_markdown(text), f"<{_web_address(url.strip())}>" if url.strip() else "")))
    if not message:
        raise ToolError("There is nothing to post: give a url, a text, or both.")
    return message


def _web_address(url: str) -> str:
    """Return an address as it leads somewhere, made of what it consists of. Raises `ToolError`.

    Nothing can stand before the host: https://bank.example@evil.example leads to evil.example.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
    except ValueError as error:
        raise ToolError(f"{url[:80]!r} is not a link.") from error
    is_plain = _HOST.fullmatch(host) and port != 0 and not _UNPRINTABLE.search(url)
    if parts.scheme not in {"http", "https"} or not is_plain or "@" in parts.netloc:
        raise ToolError(f"{url[:80]!r} is not a plain http or https link.")
    rest = quote(urlunsplit(("", "", parts.path, parts.query, parts.fragment)), safe=_IN_ADDRESS)
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{rest}"


class ScreenView(Protocol):
    """The shared screens of one room."""

    def sharing(self) -> Sequence[str]:
        """Return the names of the people who share a screen now."""

    async def look(self, question: str, *, who: str | None) -> str:
        """Return what a shared screen shows about `question`. Raises `ToolError`."""


def screen_tools(view: ScreenView | None) -> Sequence[RoomTool]:
    """Return the tool; none while nobody shares a screen. `view`: None: the room has no screens."""
    if view is None or not view.sharing():
        return ()

    async def look(arguments: Mapping[str, object]) -> Result:
        who = str(arguments["who"]) if "who" in arguments else None
        return Result(await view.look(str(arguments["question"]), who=who), anybody)

    return (
        RoomTool(
            "look_at_screen",
            "Looks at the screen that somebody shares now, as it is at this moment. Use it when somebody asks about "
            "what they show.",
            SCREEN_SCHEMA,
            look,
            asks=False,
            acts=False,
            lets="look at the shared screen",
            permits=anybody,
            timeout_s=SCREEN_TIMEOUT_S,
        ),
    )


def be_quiet_tools(asker: Asker, be_quiet: Callable[[int, int], None]) -> Sequence[RoomTool]:
    """Return the tool for one person in a room; none if nobody asks. It never asks first: whoever is in the channel may
    silence the bot. `be_quiet`: silences it for so many minutes, for the person with that id, and stops what it says.
    """
    if (user_id := asker.user_id) is None:
        return ()

    async def silence(arguments: Mapping[str, object]) -> Result:
        minutes = arguments.get("minutes", SILENT_MINUTES)
        assert isinstance(minutes, int), "the schema says so"
        be_quiet(minutes, user_id)
        return Result("You are silent now. Say nothing more.", present)

    return (
        RoomTool(
            "be_quiet",
            "Makes you say nothing for some minutes, while you go on listening. Use it when somebody wants you to be "
            "quiet, not when they only interrupt you.",
            QUIET_SCHEMA,
            silence,
            asks=False,
            lets="be quiet for some minutes",
        ),
    )


def stop_tools(asker: Asker, calls: FrozenCalls) -> Sequence[RoomTool]:
    """Return the tool for one person in a room; none if nothing runs for them. It never asks first."""
    running = calls.running_for(asker.user_id)

    async def stop(_: Mapping[str, object]) -> Result:
        stopped = ", ".join(call.tool.name for call in running if call.stop("asked"))
        return Result(f"Stopped: {stopped or 'nothing'}.", present)

    if not running:
        return ()
    return (
        RoomTool(
            "stop",
            "Stops what is still being done for who asks. Use it when they do not want it any more, not when they only "
            "interrupt you.",
            STOP_SCHEMA,
            stop,
            asks=False,
        ),
    )
