"""Leaves out the words of people who opted out, wherever stored words are shown. Pure.

Forgotten words are in no store any more. Of people who opted out, their own words are left out, and all that may repeat
them: what the bot said and noted, and summaries, in every session in which they spoke or may have been quoted.
`bot.memory.recall` leaves out the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.texts.text import Text
from compaction.model import TurnKind
from compaction.payload import PartKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from compaction.model import Turn
    from compaction.payload import PayloadPart

WITHHELD = Text("Not shown: somebody whose words may be in it has opted out.")


@dataclass(frozen=True, slots=True)
class SpeechFilter:
    """What may be shown of one session. `withheld`: the ids of people of the server who opted out.

    `speakers`: the ids of everybody who spoke in the session, or may have been quoted there.
    """

    withheld: frozenset[str]
    speakers: frozenset[str]

    @classmethod
    def of(cls, withheld: Collection[str], speakers: Collection[str]) -> SpeechFilter:
        return cls(frozenset(withheld), frozenset(speakers))

    @property
    def shows_derived(self) -> bool:
        """Return whether to show what was made of this session's words: notes, summaries, the bot's answers."""
        return not self.withheld & self.speakers

    def turn(self, turn: Turn) -> Turn:
        """Return a turn as it may be shown. Without any part that may be shown it looks forgotten."""
        if self.shows_derived:
            return turn
        told = turn.kind is TurnKind.ASSISTANT
        parts = () if told else tuple(part for part in turn.parts if part.speaker_id not in self.withheld)
        return turn if parts == turn.parts else replace(turn, parts=parts, tombstone=not parts)

    def prompt_part(self, part: PayloadPart, turns: Mapping[int, Turn]) -> str | None:
        """Return the text of a part of a prompt, or None if it may not be shown. `turns`: the session's, unfiltered."""
        if part.kind is PartKind.SYSTEM or not self.withheld:
            return part.content
        if part.kind in {PartKind.TURN, PartKind.CURRENT}:
            if part.seq_from is None or part.seq_to is None:
                return None
            said = [turns.get(seq) for seq in range(part.seq_from, part.seq_to + 1)]
            whole = all(turn is not None and self.turn(turn) is turn for turn in said)
            return part.content if whole else None
        if part.kind in {PartKind.SUMMARY, PartKind.NOTE, PartKind.EVICTION_NOTE}:
            return part.content if self.shows_derived else None
        # Quotes, facts about people and earlier sessions may come from any session of the server.
        return None
