"""Leaves out the words that a viewer may not read (`bot.readers`), and those of people who opted out, wherever stored
words are shown. Pure.

Forgotten words are in no store any more. Of people who opted out, their own words are left out, and all that may repeat
them: what the bot said and noted, and summaries, in every session in which they spoke or may have been quoted.
`bot.memory.recall` leaves out the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.readers import WHOLE
from bot.texts.text import Text
from compaction.model import TurnKind
from compaction.payload import PartKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from bot.readers import Reading
    from compaction.model import Turn
    from compaction.payload import PayloadPart

UNHEARD = Text("Not shown: it tells of what was said while you were not there.")
WITHHELD = Text("Not shown: somebody whose words may be in it has opted out.")


@dataclass(frozen=True, slots=True)
class SpeechFilter:
    """What may be shown of one session. `withheld`: the ids of people of the server who opted out.

    `speakers`: the ids of everybody who spoke in the session, or may have been quoted there. `reading`: what the viewer
    may read of it. `heard_all`: that is all of it. `reads_everything`: and all that was said on its server.
    """

    withheld: frozenset[str]
    speakers: frozenset[str]
    reading: Reading = WHOLE
    heard_all: bool = True
    reads_everything: bool = True

    @classmethod
    def of(cls, withheld: Collection[str], speakers: Collection[str]) -> SpeechFilter:
        return cls(frozenset(withheld), frozenset(speakers))

    @property
    def hidden(self) -> Text | None:
        """Return why what was made of this session's words is not shown: notes, summaries; None: it is."""
        if not self.heard_all:
            return UNHEARD
        return WITHHELD if self.withheld & self.speakers else None

    @property
    def shows_derived(self) -> bool:
        """Return whether to show what was made of this session's words: notes, summaries."""
        return self.hidden is None

    @property
    def filters(self) -> bool:
        """Return whether some of what was said on the server may not be shown."""
        return bool(self.withheld) or not (self.heard_all and self.reads_everything)

    def turn(self, turn: Turn) -> Turn:
        """Return a turn as it may be shown. Without any part that may be shown it looks forgotten."""
        turn = self.reading.turn(turn)
        if not self.withheld & self.speakers:
            return turn
        told = turn.kind is TurnKind.ASSISTANT
        parts = () if told else tuple(part for part in turn.parts if part.speaker_id not in self.withheld)
        return turn if parts == turn.parts else replace(turn, parts=parts, tombstone=not parts)

    def prompt_part(self, part: PayloadPart, turns: Mapping[int, Turn]) -> str | None:
        """Return the text of a part of a prompt, or None if it may not be shown. `turns`: the session's, unfiltered."""
        if part.kind is PartKind.SYSTEM or not self.filters:
            return part.content
        if part.kind in {PartKind.TURN, PartKind.CURRENT}:
            if part.seq_from is None or part.seq_to is None:
                return None
            said = [turns.get(seq) for seq in range(part.seq_from, part.seq_to + 1)]
            whole = all(turn is not None and self.turn(turn) is turn for turn in said)
            return part.content if whole else None
        if part.kind in {PartKind.SUMMARY, PartKind.NOTE, PartKind.EVICTION_NOTE}:
            return part.content if self.shows_derived else None
        # Quotes, facts about people, tools' results and earlier sessions may come from any session of the server.
        return None
