"""Decides whether a tool may run. Pure, and independent of the model: no prompt can change the decision.

Speech, files, screens and web pages reach the model as text, and any of it may contain instructions. So a tool with
side effects never runs because of something the model read. It runs on behalf of the person who asked the question, if
that person may use it, and only if their own words in this question ask for it.
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
# A word this long also matches longer ones that begin with it: post, posts, posting.
_SHORTEST_BEGINNING = 4
# Words in scripts without spaces, and Korean words, match anywhere: 'リンクを投稿して', '링크를 올려줘'.
_WITHIN = re.compile(f"[{UNSPACED}\uac00-\ud7a3]+")


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who asked the question. `words`: what only this person said in it.

    `present`: in the voice channel now, and not a bot. `moderator`: may manage the server.
    """

    user_id: int | None = None
    name: str = ""
    words: str = ""
    present: bool = False
    moderator: bool = False


# The asker of an unasked reply, in which the bot speaks on its own.
NOBODY = Asker()


def refusal(tool: RoomTool, asker: Asker) -> str | None:
    """Return why `tool` may not run for `asker`, as a sentence for the model, or None if it may."""
    match tool.permission:
        case Permission.ANYONE:
            allowed = True
        case Permission.MEMBERS:
            allowed = asker.present
        case Permission.MODERATORS:
            allowed = asker.present and asker.moderator
    if not allowed or (tool.side_effects and not asker.present):
        return f"{tool.name} is not allowed for who asked. Say so, and go on without it."
    if tool.side_effects and not asks_for(tool, asker.words):
        return f"Who asks did not ask for {tool.name}, and nobody else can. Say so, and go on without it."
    return None


def asks_for(tool: RoomTool, text: str) -> bool:
    """Return whether `text` contains one of the words that ask for `tool`."""
    spoken = {word.casefold() for word in _WORD.findall(text)}
    requested = [word.casefold() for word in tool.words]
    if any(_WITHIN.fullmatch(word) and word in text.casefold() for word in requested):
        return True
    return any(
        each == word or (len(word) >= _SHORTEST_BEGINNING and each.startswith(word))
        for word in requested
        for each in spoken
    )
