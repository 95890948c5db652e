"""Which turns go when Ada is forgotten: her parts, and all that the bot says from her first turn on."""

from __future__ import annotations

import pytest

from compaction.memory.forgetting import has_part_of, is_of_bot, turns_of_bot, without_part_of
from compaction.model import Seq, Turn, TurnKind, TurnPart

ADA, BO, BOT = "1", "2", "assistant"


def said(seq: int, *speakers: str, kind: TurnKind = TurnKind.SPEECH) -> Turn:
    parts = tuple(TurnPart(each, f"name of {each}", "Hello.") for each in speakers)
    return Turn(Seq(seq), kind, 10.0 * seq, 10.0 * seq + 1, parts)


TURNS = [
    said(0, BOT, kind=TurnKind.ASSISTANT),
    said(1, ADA),
    said(2, BO),
    said(3, BOT, kind=TurnKind.ASSISTANT),
    said(4, BO, kind=TurnKind.EFFECT),
    said(5, BOT, kind=TurnKind.EFFECT),
]


@pytest.mark.parametrize(("from_seq", "gone"), [(0, [0, 3, 5]), (1, [3, 5]), (3, [3, 5]), (4, [5]), (6, [])])
def test_the_bots_turns_go_from_a_turn_on(from_seq: int, gone: list[int]) -> None:
    """Whatever they say, and whomever they answer."""
    assert [turn.seq for turn in turns_of_bot(TURNS, from_seq=from_seq)] == gone


def test_a_part_is_taken_out_by_its_speaker() -> None:
    """A turn keeps its number and what others say in it; without any it is a tombstone."""
    both, alone = said(7, ADA, BO), said(8, ADA)
    assert has_part_of(both, ADA)
    left = without_part_of(both, ADA)
    assert ([part.speaker_id for part in left.parts], left.tombstone) == ([BO], False)
    assert not has_part_of(left, ADA)
    gone = without_part_of(alone, ADA)
    assert (gone.seq, gone.parts, gone.tombstone) == (8, (), True)


@pytest.mark.parametrize(
    ("turn", "expected"), [(TURNS[0], True), (TURNS[1], False), (TURNS[4], False), (TURNS[5], True)]
)
def test_a_sound_that_people_make_is_not_of_the_bot(turn: Turn, *, expected: bool) -> None:
    assert is_of_bot(turn) is expected
