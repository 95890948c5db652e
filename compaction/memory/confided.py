"""Finds what somebody told in confidence, by the words in which people ask for that. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compaction.model import SAID, Seq
from compaction.summary.port import REACH_TURNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compaction.model import Turn

# How long before and after 'don't tell anyone' its speaker may have said what they mean.
_WITHIN_S = 30.0
# A missed confidence is quoted, so this errs on the side of too many.
_CONFIDED = re.compile(
    r"\b(?:do not|don'?t|never) (?:you )?(?:dare )?(?:tell|repeat|mention|pass)\b|\btell no ?(?:one|body)\b"
    r"|\bbetween (?:you and me|us|ourselves)\b|\b(?:in|strictly) confiden(?:ce|tial)\b|\boff the record\b"
    r"|\bkeep (?:it|this|that) (?:to yourself|between|secret|quiet|private)\b|\b(?:my|our|a) secret\b"
    r"|\bim vertrauen\b|\bunter uns\b|\b(?:nicht|nie) (?:weiter|herum)(?:sagen|erzählen)\b|\bvertraulich\b"
    r"|\b(?:sag|sagt|erzähl|erzählt)\b[^.!?]{0,30}\b(?:niemand(?:em)?|keinem|nicht weiter)\b|\bgeheimnis\b"
    r"|\bbehalt(?:e|et)?\b[^.!?]{0,20}\bfür (?:dich|euch)\b|\bbleibt unter\b",
    re.IGNORECASE,
)


def confided(turns: Iterable[Turn]) -> frozenset[Seq]:
    """Return the turns in which somebody tells something in confidence: says so, or says so just before or after."""
    said = [turn for turn in turns if turn.kind in SAID]
    found: set[Seq] = set()
    for place, turn in enumerate(said):
        marking = {part.speaker_id for part in turn.parts if _CONFIDED.search(part.text)}
        if not marking:
            continue
        found.add(turn.seq)
        for other in said[max(0, place - REACH_TURNS) : place + REACH_TURNS]:
            apart = max(turn.started_at - other.ended_at, other.started_at - turn.ended_at)
            if apart <= _WITHIN_S and any(part.speaker_id in marking for part in other.parts):
                found.add(other.seq)
    return frozenset(found)
