"""The tool `look_at_screen`: describes a shared screen. Available only while somebody shares one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from bot.brain.tools.tool import RoomTool, ToolError, anybody

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# The tool may have to wait for a vision model.
TIMEOUT_S = 15.0

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "maxLength": 300, "description": "What to look for on the screen."},
        "who": {"type": "string", "maxLength": 100, "description": "Whose screen: a name. Without: the one shared."},
    },
    "required": ["question"],
    "additionalProperties": False,
}


class ScreenView(Protocol):
    """The shared screens of one room."""

    def sharing(self) -> Sequence[str]:
        """Return the names of the people who share a screen now."""

    async def look(self, question: str, *, who: str | None) -> str:
        """Return what a shared screen shows about `question`. Raises `ToolError`."""


def screen_tool(view: Callable[[], ScreenView | None]) -> RoomTool:
    """Return the tool. `view`: asked each time, because a room has its tools before its screens; None: it has none."""

    async def look(arguments: Mapping[str, object]) -> str:
        if (shown := view()) is None:
            raise ToolError("Nobody shares a screen now.")
        who = arguments.get("who")
        return await shown.look(str(arguments["question"]), who=None if who is None else str(who))

    return RoomTool(
        "look_at_screen",
        "Looks at the screen that somebody shares now, as it is at this moment. Use it when somebody asks about what "
        "they show.",
        SCHEMA,
        look,
        asks=False,
        permits=anybody,
        timeout_s=TIMEOUT_S,
        available=lambda: (shown := view()) is not None and bool(shown.sharing()),
    )
