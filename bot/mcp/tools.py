"""Adapts the tools of MCP servers: only allowed ones, with our names, permissions and limits.

A server's own description is not trusted: descriptions are shortened, schemas are checked. A tool has side effects
unless the settings or the server's `readOnlyHint` say that it changes nothing.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.brain.tools.schema import schema_problem
from bot.brain.tools.tool import RoomTool
from compaction.untrusted_text import defuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.mcp.connection import McpConnection, McpTool
    from bot.mcp.settings import McpServerSettings

log = structlog.get_logger()

# Characters that endpoints refuse in a tool's name.
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
MOST_NAME_CHARS = 64
MOST_DESCRIPTION_CHARS = 600
_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]+")
# Shorter words in a tool's name ('to', 'of') don't name it.
_SHORTEST_WORD = 3


def adapt_tools(connection: McpConnection) -> tuple[RoomTool, ...]:
    """Return the tools of a server that are allowed and usable now."""
    settings = connection.settings
    return tuple(
        _tool(connection, theirs)
        for theirs in connection.tools
        if settings.allows(theirs.name) and _usable(settings, theirs)
    )


def tool_name(server: str, tool: str) -> str:
    return _NOT_IN_NAMES.sub("_", f"{server}_{tool}")[:MOST_NAME_CHARS]


def _usable(settings: McpServerSettings, theirs: McpTool) -> bool:
    problem = schema_problem(theirs.schema)
    if problem is not None:
        log.warning("mcp_tool_unusable", server=settings.name, tool=theirs.name[:60], problem=problem)
    return problem is None


def _tool(connection: McpConnection, theirs: McpTool) -> RoomTool:
    settings = connection.settings
    about = " ".join(defuse(theirs.description).split())[:MOST_DESCRIPTION_CHARS]
    return RoomTool(
        name=tool_name(settings.name, theirs.name),
        description=about or f"{defuse(theirs.name)[:MOST_NAME_CHARS]} of {settings.name}.",
        parameters=_defused(theirs.schema),
        call=partial(connection.call, theirs.name),
        permission=settings.permission,
        side_effects=not theirs.read_only and settings.has_side_effects(theirs.name),
        words=(*_words(settings.name, theirs.name), *settings.words),
        # The connection has the shorter limit, and its message says more.
        timeout_s=settings.timeout_s + 1.0,
    )


def _defused(schema: Mapping[str, object]) -> dict[str, object]:
    """Return a schema with all its text defused, because a model reads its descriptions, names and choices."""
    return {defuse(name): _value(each) for name, each in schema.items()}


def _value(value: object) -> object:
    match value:
        case str():
            return defuse(value)
        case dict():
            return _defused(value)
        case list():
            return [_value(each) for each in value]
        case _:
            return value


def _words(server: str, tool: str) -> tuple[str, ...]:
    """Return the words that name a tool in an order: those of its name, then those of the server's ('calendar')."""
    return tuple(dict.fromkeys((*_words_of(tool), *_words_of(server))))


def _words_of(name: str) -> tuple[str, ...]:
    words = (word.lower() for word in _WORD.findall(name))
    return tuple(dict.fromkeys(word for word in words if len(word) >= _SHORTEST_WORD))
