"""What goes when Ada is forgotten: her parts, what the bot says from her first turn on, and what was folded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.memory.forgetting import forget_in_segments, has_part_of, is_of_bot, turns_of_bot, without_part_of
from compaction.model import EXTRACTIVE, NoteId, Seq, Turn, TurnKind, TurnPart
from compaction.summary.port import NOTHING_KEPT
from tests.compaction.segments import batch, fact

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


def test_forgetting_goes_by_turns() -> None:
    """Facts of a forgotten turn go, their numbers stay; gists that cover it go, and so do all later paragraphs, with
    the gists that a model wrote which had read these.
    """
    before, made = (
        replace(batch(at, *facts), heading="The cabin", paragraph=f"All until {at}.", note_ids=(NoteId(f"n{at}"),))
        for at, facts in enumerate(
            ((fact(3, "Cleo sings."),), (fact(11, "Ada is ill."), fact(12, "Bob drives."))),
        )
    )
    by_code = replace(made, prompt_version=EXTRACTIVE)
    (forgot,) = forget_in_segments([made], {Seq(11)}, set())
    assert [each.text for each in forgot.facts] == ["", "Bob drives."]
    assert (forgot.gist, forgot.paragraph) == ("Bob drives.", "")
    screen = replace(before, facts=(replace(before.facts[0], note_id=NoteId("n0")),))
    for first, seqs, notes in ((before, {Seq(3)}, set[str]()), (screen, set[Seq](), {"n0"})):
        gone, later = forget_in_segments([first, made], seqs, notes)
        assert (gone.gist, gone.paragraph) == (NOTHING_KEPT, "")
        assert (later.facts, later.gist, later.paragraph) == (made.facts, "Ada is ill. Bob drives.", "")
        assert (gone.heading, later.heading) == ("", "Ada is ill")
        _, later = forget_in_segments([first, by_code], seqs, notes)
        assert (later.gist, later.heading, later.paragraph) == (made.gist, "Ada is ill", "")
        _, later = forget_in_segments([replace(first, closing=True), made], seqs, notes)
        assert later == made
    assert forget_in_segments([made], {Seq(20)}, {"n20"}) == [made]
