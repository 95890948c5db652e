"""What goes when a person is forgotten: their parts of turns, the bot's turns from then on, and what was made of both.

The bot may say again what it has heard, in any words and at any time. So all that it said after the person's first turn
goes. A forgotten fact is replaced by a blank one, because other facts refer to facts by their index. A gist and a
paragraph go if they cover a forgotten turn or note, or if what wrote them had read a paragraph that does. So does every
heading from then on. The next fold writes a paragraph from the facts and chapters that are left. All by the numbers of
turns; no words are compared. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.memory.chapters import without_headings
from compaction.model import Segment, Seq, Turn, TurnKind
from compaction.summary.extractive import make_gist

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from collections.abc import Set as AbstractSet


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
    return turn.with_parts(tuple(part for part in turn.parts if part.speaker_id != person_id))


def is_of_bot(turn: Turn) -> bool:
    """Return whether the bot said or did it. Some effects are sounds that people made."""
    return turn.kind is TurnKind.ASSISTANT or (
        turn.kind is TurnKind.EFFECT and any(part.speaker_id == _BOT_ID for part in turn.parts)
    )


def forget_in_segments(
    segments: Iterable[Segment], seqs: Collection[Seq], gone_notes: AbstractSet[str]
) -> list[Segment]:
    """Return the segments of a session, in order, without what was made of these turns and notes.

    From the first segment on that was made of one, all paragraphs go, because each tells of the whole session. So does
    the gist of a model, which was asked with the paragraph before. Another gist goes if what it was made of does.
    """
    before = tuple(segments)
    made = []
    lost = []
    is_told = False
    for each in before:
        covered = any(each.start <= seq < each.end for seq in seqs) or not gone_notes.isdisjoint(each.note_ids)
        # A closing segment is not read by those that follow it.
        lost.append(is_told or covered)
        made.append(_forget_in_segment(each, seqs, gone_notes, covered=covered, retold=lost[-1]))
        is_told |= covered and not each.closing
    return without_headings(made, before, lost)


def _forget_in_segment(
    segment: Segment, seqs: Collection[Seq], gone_notes: AbstractSet[str], *, covered: bool, retold: bool
) -> Segment:
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
