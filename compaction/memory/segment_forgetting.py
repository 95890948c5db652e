"""Takes what was made of forgotten turns out of a segment, by the numbers of the turns. No words are compared.

A forgotten fact is replaced by a blank one, because other facts refer to facts by their index. A gist and a paragraph
go if they cover a forgotten turn, or if a model wrote them that had read a paragraph that does. The next fold writes a
paragraph from the facts and gists that are left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.summary.extractive import make_gist

if TYPE_CHECKING:
    from collections.abc import Collection

    from compaction.model import Segment, Seq


def forget_in_segment(segment: Segment, seqs: Collection[Seq], gone_notes: Collection[str]) -> tuple[Segment, int]:
    """Return the segment without what was made of these turns and notes, and how many facts were removed.

    The paragraph goes if a forgotten turn is before the segment's end, because it tells of the whole session. So does
    the gist of a model, which was asked with the paragraph before; another gist goes if a forgotten turn is in its
    range.
    """
    shown = [note_id for note_id in segment.note_ids if note_id in gone_notes]
    covered = bool(shown) or any(segment.start <= seq < segment.end for seq in seqs)
    gone = [
        bool(fact.text) and (fact.note_id in gone_notes or not frozenset(fact.turns).isdisjoint(seqs))
        for fact in segment.facts
    ]
    facts = tuple(fact.blanked() if lost else fact for fact, lost in zip(segment.facts, gone, strict=True))
    retold = covered or any(seq < segment.end for seq in seqs)
    return (
        replace(
            segment,
            facts=facts,
            gist=make_gist(facts) if covered or (retold and segment.is_by_model) else segment.gist,
            paragraph="" if retold else segment.paragraph,
            note_ids=tuple(note_id for note_id in segment.note_ids if note_id not in gone_notes),
        ),
        sum(gone),
    )
