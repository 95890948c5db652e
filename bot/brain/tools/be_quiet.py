"""The tool `be_quiet`: silences the bot for some minutes. It never asks: whoever is in the channel may silence it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from bot.brain.silence import SILENT_MINUTES
from bot.brain.tools.tool import RoomTool
from bot.guild import MOST_SILENT_MINUTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.brain.tools.permission import Asker

SCHEMA: dict[str, object] = {
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


class BeQuiet(Protocol):
    """Silences the bot in a room for some minutes, and stops what it says."""

    def __call__(self, minutes: int, /, *, by: int) -> None:
        """`by`: who wants it."""


def be_quiet_tools(asker: Asker, be_quiet: BeQuiet) -> Sequence[RoomTool]:
    """Return the tool for one person in a room; none if nobody asks."""
    if (user_id := asker.user_id) is None:
        return ()

    async def silence(arguments: Mapping[str, object]) -> str:
        minutes = arguments.get("minutes", SILENT_MINUTES)
        assert isinstance(minutes, int), "the schema says so"
        be_quiet(minutes, by=user_id)
        return "You are silent now. Say nothing more."

    tool = RoomTool(
        "be_quiet",
        "Makes you say nothing for some minutes, while you go on listening. Use it when somebody wants you to be "
        "quiet, not when they only interrupt you.",
        SCHEMA,
        silence,
        asks=False,
    )
    return (tool,)
