"""What somebody missed who came later, as /recap tells it with `missed`, in words that can be spoken.

Models read the whole talk, so only the answers without a model use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bot.brain.tools.tool import Asker, Result, RoomTool, only
from bot.texts.text import Text, joined

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from compaction.memory.digest import Digest

MISSED: Final = "missed"
NOTHING_MISSED = Text("While you were away, nothing was said that I can tell you.")
# What somebody listens to.
MOST_LINES = 5


def missed_tools(asker: Asker, missed: Callable[[int], Awaitable[Digest | None]]) -> Sequence[RoomTool]:
    """Return the tool for one person in a room; none if nobody asks. `missed`: returns the digest of what a person
    missed, None if they have been there all the time. Then the tool tells nothing.
    """
    if (person_id := asker.user_id) is None:
        return ()

    async def tell(_: Mapping[str, object]) -> Result:
        # Others may know another part of the talk.
        theirs = only(asker)
        if (digest := await missed(person_id)) is None:
            return Result(joined(()), theirs)
        lines = (*digest.yours, *digest.decisions, *digest.to_do, *digest.open, *digest.about, *digest.last)
        told = [
            Text("{speaker} said: {words}", speaker=each.speaker, words=each.text) if each.speaker else each.text
            for each in lines[:MOST_LINES]
        ]
        return Result(joined(told) if told else NOTHING_MISSED, theirs)

    return (RoomTool(MISSED, "", {"type": "object"}, tell, asks=False, acts=False, offered=False),)
