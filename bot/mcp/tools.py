"""Adapts the tools of MCP servers: only approved ones, with our names, permissions and limits.

A server's own description is not trusted: descriptions are shortened, schemas are checked, and what it says of its
tools' effects counts for nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import structlog

from bot.brain.tools.tool import (
    BUILT_IN_NAMES,
    MOST_SCHEMA_CHARS,
    Result,
    RoomTool,
    schema_chars,
    schema_problem,
    with_items,
)
from bot.private_files import make_private_folder, replace_private_text
from compaction.untrusted_text import defuse

if TYPE_CHECKING:
    from pathlib import Path

    from bot.mcp.settings import McpServerSettings

    # Calls a tool by the name that its server gives it.
    CallTool = Callable[[str, Mapping[str, object]], Awaitable[str]]

log = structlog.get_logger()

# A call that takes longer is given up. After the first seconds it goes on behind the talk (`bot.brain.tools`).
CALL_TIMEOUT_S = 300.0
# Characters that endpoints refuse in a tool's name.
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
MOST_NAME_CHARS = 64
# Tells apart tools whose names are the same once they are cut, or without what endpoints refuse.
_DIGEST_CHARS = 8
MOST_DESCRIPTION_CHARS = 600
# Of all schemas of a server together, which are about 50,000 tokens: a prompt has room for less. To check the worst of
# that length takes half a minute.
MOST_SCHEMAS_CHARS = 200_000
# A tool without parameters. OpenAI refuses a schema without these, and with it all tools of the call.
_NOTHING: dict[str, object] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as its server describes it, untrusted."""

    name: str
    description: str
    schema: Mapping[str, object]


def digest(tool: McpTool) -> str:
    """Return what tells apart two tools of a server, or two descriptions of one."""
    whole = json.dumps([tool.name, tool.description, tool.schema], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


APPROVALS_FILE = "mcp-approvals.json"


class Approvals:
    """Which tools of servers the operator has approved: by a digest of name, description and schema of each.

    The record is a file in the data folder. It is read anew each time, so that an approval needs no restart.
    `roomtone doctor --approve SERVER` shows the tools and writes it. A tool that its server describes otherwise
    afterwards is off until it is approved again, so no server can change what people have agreed to lend to a model.
    """

    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / APPROVALS_FILE

    def of(self, server: str) -> frozenset[str]:
        """Return the digests of the tools of a server that are approved; none if the record cannot be read."""
        return frozenset(self._read().get(server, ()))

    def approve(self, server: str, digests: Iterable[str]) -> None:
        """Approve these tools of a server, and no others of it. Raises `OSError`."""
        kept = {**self._read(), server: sorted(digests)}
        make_private_folder(self._file.parent)
        replace_private_text(self._file, json.dumps(kept, indent=1), durable=True)

    def _read(self) -> Mapping[str, list[str]]:
        try:
            found = json.loads(self._file.read_text("utf-8"))
            return {str(name): [str(each) for each in digests] for name, digests in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            log.warning("mcp_approvals_unread", error_class=type(error).__name__)
            return {}


def adapt_tools(
    listed: Iterable[McpTool], settings: McpServerSettings, call: CallTool, approved: Collection[str]
) -> tuple[RoomTool, ...]:
    """Return the tools of a server that are approved (`Approvals`) and usable. `call`: calls one of them.

    Takes up to seconds of the processor. Any thread may call it.
    """
    wanted = used_tools(listed, settings)
    names = tool_names(settings.name, [theirs.name for theirs in wanted])
    allowed = [theirs for theirs in wanted if digest(theirs) in approved]
    return tuple(_tool(theirs, names[theirs.name], settings, call) for theirs in _usable(allowed, settings.name))


def used_tools(listed: Iterable[McpTool], settings: McpServerSettings) -> list[McpTool]:
    """Return the tools that are not off. Of several with one name the first counts."""
    named: dict[str, McpTool] = {}
    for theirs in listed:
        if settings.use_of(theirs.name) != "off":
            named.setdefault(theirs.name, theirs)
    return list(named.values())


def tool_names(server: str, tools: Collection[str]) -> dict[str, str]:
    """Return what each of a server's tools is called here: as endpoints take it, and each by a name of its own.

    Of two that would have the same name, one whose name had to be changed for it gets a digest of its own name; so does
    one that would be called like a tool of our own. No server's name has the line between the two, so no tool of
    another server has the same name.
    """
    names = {tool: _NOT_IN_NAMES.sub("_", f"{server}_{tool}")[:MOST_NAME_CHARS] for tool in tools}
    times = Counter(names.values())
    for tool, name in names.items():
        if name in BUILT_IN_NAMES or (times[name] > 1 and name != f"{server}_{tool}"):
            own = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
            names[tool] = f"{name[: MOST_NAME_CHARS - _DIGEST_CHARS - 1]}_{own}"
    return names


def _usable(tools: Iterable[McpTool], server: str) -> Iterator[McpTool]:
    """Yield the tools whose schemas are valid and not too long. Logs the others."""
    left = MOST_SCHEMAS_CHARS
    for theirs in tools:
        if (chars := schema_chars(theirs.schema)) <= MOST_SCHEMA_CHARS:
            # A longer one is refused at once.
            left -= chars
        problem = "the schemas before it are too long" if left < 0 else schema_problem(theirs.schema)
        if problem is None:
            yield theirs
        else:
            log.warning("mcp_tool_unusable", server=server, tool=theirs.name[:60], problem=problem)


def _tool(theirs: McpTool, name: str, settings: McpServerSettings, call: CallTool) -> RoomTool:
    about = " ".join(defuse(theirs.description).split())[:MOST_DESCRIPTION_CHARS]

    async def called(arguments: Mapping[str, object]) -> Result:
        return Result(await call(theirs.name, arguments), settings.permits)

    return RoomTool(
        name=name,
        description=about or f"{defuse(theirs.name)[:MOST_NAME_CHARS]} of {settings.name}.",
        parameters=_NOTHING | with_items(cast("dict[str, object]", _defused(theirs.schema))),
        call=called,
        asks=settings.use_of(theirs.name) != "never ask",
        slow=True,
        permits=settings.permits,
        server=settings.name,
        title=theirs.name,
        # The connection has the shorter limit, and its message says more.
        timeout_s=CALL_TIMEOUT_S + 1.0,
    )


def _defused(value: object) -> object:
    """Return a schema, or a part of one, with all its text defused, because a model reads its descriptions, names and
    choices.
    """
    match value:
        case str():
            return defuse(value)
        case Mapping():
            return {defuse(name): _defused(each) for name, each in value.items()}
        case list():
            return [_defused(each) for each in value]
    return value
