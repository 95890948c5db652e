"""Decides which turns of a session go when a person is forgotten: their parts, and the bot's turns from then on. Pure.

The bot may say again what it has heard, in any words and at any time. So all that it said after the person's first turn
goes, and no words are compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.model import TurnKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compaction.model import Turn

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
