"""Whether a tool may run for somebody. Pure, and decided without the model: whatever it was talked into, this holds.

What people say, files, screens and pages reach the model as text, and any of it may hold orders. So a tool with side
effects never runs because of what the model read. It runs on behalf of who asked the question, if that person may,
and only if their own words of this question ask for such a thing; what others said, or wrote somewhere, is no order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.brain.lexicon import UNSPACED
from bot.brain.tools.tool import Permission

if TYPE_CHECKING:
    from bot.brain.tools.tool import RoomTool

_WORD = re.compile(r"[^\W_]+")
# A beginning this long stands for all words that begin with it: post, posts, posting.
_SHORTEST_BEGINNING = 4
# Words without spaces around them, and Korean ones with an ending: 'リンクを投稿して', '링크를 올려줘'.
_WITHIN = re.compile(f"[{UNSPACED}\uac00-\ud7a3]+")


@dataclass(frozen=True, slots=True)
class Asker:
    """On whose behalf tools run: who asked the question that is answered. `said`: that person's words of it, alone.

    `present`: they are a member who is in the channel, and no bot. `moderator`: they may manage the server.
    """

    user_id: int | None = None
    name: str = ""
    said: str = ""
    present: bool = False
    moderator: bool = False


# A thought of the bot's own is on nobody's behalf.
NOBODY = Asker()


def refusal(tool: RoomTool, asker: Asker) -> str | None:
    """Return why `tool` may not run for `asker`, as a sentence for the model; None if it may."""
    match tool.permission:
        case Permission.ANYONE:
            allowed = True
        case Permission.MEMBERS:
            allowed = asker.present
        case Permission.MODERATORS:
            allowed = asker.present and asker.moderator
    if not allowed or (tool.side_effects and not asker.present):
        return f"{tool.name} is not allowed for who asked. Say so, and go on without it."
    if tool.side_effects and not asks_for(tool, asker.said):
        return f"Who asks did not ask for {tool.name}, and nobody else can. Say so, and go on without it."
    return None


def asks_for(tool: RoomTool, said: str) -> bool:
    """Return whether somebody's words ask for what `tool` does."""
    spoken = {word.casefold() for word in _WORD.findall(said)}
    wanted = [word.casefold() for word in tool.words]
    if any(_WITHIN.fullmatch(word) and word in said.casefold() for word in wanted):
        return True
    return any(
        each == word or (len(word) >= _SHORTEST_BEGINNING and each.startswith(word))
        for word in wanted
        for each in spoken
    )
