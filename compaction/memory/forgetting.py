"""What goes when a person is forgotten: their parts of turns, the bot's turns from then on, and what was made of both.

The bot may say again what it has heard, in any words and at any time. So all that it said after the person's first turn
goes. A forgotten fact is replaced by a blank one, because other facts refer to facts by their index. A gist and a
paragraph go if they cover a forgotten turn, or if a model wrote them that had read a paragraph that does. The next fold
writes a paragraph from the facts and gists that are left. All by the numbers of turns; no words are compared. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.model import TurnKind
from compaction.summary.extractive import make_gist

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from collections.abc import Set as AbstractSet

    from compaction.model import Segment, Seq, Turn

# The bot's speaker id in turns; people have Discord's numbers.
_BOT_ID = "assistant"


def turns_of_bot(said: Iterable[Turn], *, from_seq: int) -> list[Turn]:
    """Return what the bot said or did in turn `from_seq` and later."""
    return [turn for turn in said if turn.seq >= from_seq and is_of_bot(turn)]


def has_part_of(turn: Turn, person_id: str) -> bool:
    """Return whether a person has a part in a turn."""
    return any(part.speaker_id == person_id for part in turn.parts)


def without_part_of(turn: Turn, person_id: str) -> Turn:
    """Return a turn without a person's part; a tombstone if nothing is left."""
    left = tuple(part for part in turn.parts if part.speaker_id != person_id)
    return replace(turn, parts=left, tombstone=not left)


def is_of_bot(turn: Turn) -> bool:
    """Return whether the bot said or did it. Some effects are sounds that people made."""
    return turn.kind is TurnKind.ASSISTANT or (
        turn.kind is TurnKind.EFFECT and any(part.speaker_id == _BOT_ID for part in turn.parts)
    )


def forget_in_segment(segment: Segment, seqs: Collection[Seq], gone_notes: AbstractSet[str]) -> Segment:
    """Return the segment without what was made of these turns and notes.

    The paragraph goes if a forgotten turn is before the segment's end, because it tells of the whole session. So does
    the gist of a model, which was asked with the paragraph before; another gist goes if a forgotten turn is in its
    range.
    """
    covered = any(segment.start <= seq < segment.end for seq in seqs) or not gone_notes.isdisjoint(segment.note_ids)
    retold = covered or any(seq < segment.end for seq in seqs)
    facts = tuple(
        fact.blanked() if fact.note_id in gone_notes or not frozenset(fact.turns).isdisjoint(seqs) else fact
        for fact in segment.facts
    )
    return replace(
        segment,
        facts=facts,
        gist=make_gist(facts) if covered or (retold and segment.is_by_model) else segment.gist,
        paragraph="" if retold else segment.paragraph,
        note_ids=tuple(note_id for note_id in segment.note_ids if note_id not in gone_notes),
    )
