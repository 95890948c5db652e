"""When somebody was away from a session, as its turns about comings and goings tell. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from compaction.model import TurnKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.model import Turn

# How a turn about coming and going goes on behind the name (`bot.room.conversation.membership`). Others of its kind are
# about a shared screen, and quote it.
_COMES_OR_GOES = re.compile(r" (?:left|joined) the channel\b")
# The last of these words in it tells where it left the person.
_MOVES = re.compile(r"\b(left|joined|came back)\b")
_AWAY = "left"


@dataclass(frozen=True, slots=True)
class Absence:
    """A time without somebody. `since`, `until`: UTC epoch seconds; `until` None: they have not come back.

    `left`: it began when they left; else they had never come.
    """

    since: float
    until: float | None
    left: bool = field(default=False, compare=False)


def last_absence(turns: Sequence[Turn], person_id: str) -> Absence | None:
    """Return a person's last absence from the session with these turns; None if they were there from the beginning.

    Who came later was away from the beginning on, and so was who never came.
    """
    if not turns:
        return None
    found: Absence | None = Absence(turns[0].started_at, None)
    seen = False
    for turn in turns:
        part = next((each for each in turn.parts if each.speaker_id == person_id), None)
        if part is None:
            continue
        what = part.text.removeprefix(part.speaker)
        is_move = turn.kind is TurnKind.MEMBERSHIP and _COMES_OR_GOES.match(what) is not None
        moves = _MOVES.findall(what) if is_move else []
        if not seen and (not moves or moves[0] == _AWAY):
            # Who speaks, or leaves, without having come was there.
            found = None
        seen = True
        if moves and moves[-1] == _AWAY:
            found = Absence(turn.started_at, None, left=True)
        elif found is not None and found.until is None:
            found = replace(found, until=turn.started_at)
    return found
