"""Decides whether a tool may run. Pure, and independent of the model: no prompt can change the decision.

Speech, files, screens and web pages reach the model as text, and any of it may contain instructions. So a tool with
side effects never runs because of something the model read. It runs on behalf of the person who asked the question, if
that person may use it, and only if they ordered it in this question (`orders`) or said yes to the bot's question about
it (`proposals`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.brain.tools.orders import Demand, demand_for, says_yes
from bot.brain.tools.tool import Permission

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.brain.tools.tool import RoomTool


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who asked the question. `words`: what only this person said in it, without the bot's name.

    `present`: in the voice channel now, and not a bot. `moderator`: may manage the server. `spoke_at`: when they had
    finished the question, monotonic seconds; None if that is not known. `language`: the code of theirs; empty if it is
    not known.
    """

    user_id: int | None = None
    name: str = ""
    words: str = ""
    present: bool = False
    moderator: bool = False
    spoke_at: float | None = None
    language: str = ""


# The asker of an unasked reply, in which the bot speaks on its own.
NOBODY = Asker()


def lacks_right(tool: RoomTool, asker: Asker) -> str | None:
    """Return why `asker` has no right to use `tool`, as a sentence for the model, or None if they have it."""
    match tool.permission:
        case Permission.ANYONE:
            allowed = True
        case Permission.MEMBERS:
            allowed = asker.present
        case Permission.MODERATORS:
            allowed = asker.present and asker.moderator
    if not allowed or (tool.side_effects and not asker.present):
        return f"{tool.name} is not allowed for who asked. Say so, and go on without it."
    return None


def demand_of(tool: RoomTool, asker: Asker, tools: Sequence[RoomTool]) -> Demand:
    """Return whether the asker's words demand a tool with side effects. `tools`: all that could be meant instead."""
    demand = demand_for(tool, asker.words, [each for each in tools if each.side_effects])
    if demand is Demand.NOT and says_yes(asker.words, tool):
        # The model may have asked in its own words. The bot asks again in its own.
        return Demand.PERHAPS
    return demand


def refusal(tool: RoomTool, asker: Asker, tools: Sequence[RoomTool]) -> str | None:
    """Return why `tool` may neither run for `asker` nor be asked about, for the model, or None if it may."""
    reason = lacks_right(tool, asker)
    if reason is None and tool.side_effects and demand_of(tool, asker, tools) is Demand.NOT:
        return f"Who asks did not ask for {tool.name}, and nobody else can. Say so, and go on without it."
    return reason
