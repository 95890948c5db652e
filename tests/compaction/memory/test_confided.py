"""What people ask to keep for oneself is found by the words that they use."""

from __future__ import annotations

import pytest

from compaction.memory.confided import confided
from compaction.model import Seq, Turn, TurnKind, TurnPart


def turn(seq: int, speaker: str, text: str, *, at: float | None = None) -> Turn:
    start = seq * 4.0 if at is None else at
    return Turn(Seq(seq), TurnKind.SPEECH, start, start + 2.0, (TurnPart(speaker, speaker, text),))


@pytest.mark.parametrize(
    "words",
    [
        "Between you and me, I am leaving the company.",
        "Don't tell anyone, I failed the exam.",
        "This is off the record.",
        "Keep it to yourself.",
        "I tell you that in confidence.",
        "Das bleibt unter uns, ich kündige.",
        "Sag das bitte niemandem.",
        "Das ist vertraulich.",
        "Behalt das bitte für dich.",
    ],
)
def test_it_is_what_the_same_person_said_just_before_and_after(words: str) -> None:
    turns = [turn(seq, "Bob" if seq % 2 else "Ada", f"Parcel {seq}.") for seq in range(10)]
    turns[6] = turn(6, "Ada", words)
    assert confided(turns) == {0, 2, 4, 6, 8}


def test_plain_talk_is_no_confidence() -> None:
    """Who asks to be told something, or speaks later, has confided nothing."""
    plain = [
        "Tell me what the gate code is.",
        "Sag mir, wann du kommst.",
        "I told her about the map.",
        "Unter dem Tisch.",
    ]
    assert confided([turn(seq, "Ada", text) for seq, text in enumerate(plain)]) == frozenset()
    apart = [turn(0, "Ada", "I like jazz."), turn(1, "Ada", "Don't tell anyone: I hate jazz.", at=300.0)]
    assert confided(apart) == {1}
