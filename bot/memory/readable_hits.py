"""Which hits of a search may be read, by what its readers may read of their sessions (`bot.readers`). Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.memory.passage import PassageKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.readers import Reading
    from compaction.memory.recall import RecallHit
    from compaction.model import SessionId


def readable_hits(
    found: Sequence[RecallHit], readings_of: Callable[[SessionId], Sequence[Reading]]
) -> tuple[RecallHit, ...]:
    """Return the hits that may be read, with those of the turns around them that may. `readings_of`: returns what each
    of those who get to see them may read of a session.

    Nobody knows of a gist when the last turn was said that it is about, so it takes somebody who may read all.
    """
    read: list[RecallHit] = []
    for hit in found:
        readings = readings_of(hit.session_id)
        turns = tuple(turn for turn in hit.turns if all(reading.reads(turn) for reading in readings))
        match hit.kind:
            case PassageKind.TURN:
                may = any(turn.seq == hit.seq for turn in turns)
            case PassageKind.NOTE:
                may = all(reading.covers(hit.at, hit.at) for reading in readings)
            case PassageKind.SEGMENT:
                may = all(reading.is_whole for reading in readings)
        if may:
            read.append(replace(hit, turns=turns))
    return tuple(read)
