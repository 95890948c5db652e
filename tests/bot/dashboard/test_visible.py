"""What may be shown of a session in which somebody has opted out."""

from __future__ import annotations

import pytest

from bot.dashboard.access import SpeechFilter
from compaction.model import Seq, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, make_part

SECRET = "My locker code is 4711."


def turn(seq: int, *speakers: str, kind: TurnKind = TurnKind.SPEECH) -> Turn:
    """Return a turn of these people."""
    parts = tuple(TurnPart(speaker, speaker.title(), SECRET) for speaker in speakers)
    return Turn(Seq(seq), kind, 0.0, 1.0, parts)


SAID = {
    0: turn(0, "ada"),
    1: turn(1, "ben"),
    2: turn(2, "ada", "ben"),
    3: turn(3, "assistant", kind=TurnKind.ASSISTANT),
}
EVERYBODY = frozenset({"ada", "ben", "assistant"})


def test_words_of_who_opted_out_and_what_may_repeat_them_are_left_out() -> None:
    """Their parts go, other people's words stay, and what the bot said is not shown."""
    visible = SpeechFilter(frozenset({"ada"}), EVERYBODY)
    shown = [visible.turn(each) for each in SAID.values()]
    assert [[part.speaker_id for part in each.parts] for each in shown] == [[], ["ben"], ["ben"], []]
    assert [each.tombstone for each in shown] == [True, False, False, True]
    assert not visible.shows_derived


def test_a_session_without_them_is_shown_whole() -> None:
    """Who opted out and did not speak in a session hides nothing of it."""
    visible = SpeechFilter(frozenset({"chloe"}), EVERYBODY)
    assert visible.shows_derived
    assert visible.turn(SAID[3]) is SAID[3]


@pytest.mark.parametrize(
    ("kind", "seqs", "shown"),
    [
        (PartKind.SYSTEM, None, True),
        (PartKind.TURN, (1, 1), True),
        (PartKind.TURN, (0, 0), False),
        (PartKind.TURN, (2, 2), False),
        (PartKind.TURN, (3, 3), False),
        (PartKind.TURN, (9, 9), False),
        (PartKind.TURN, None, False),
        (PartKind.CURRENT, (1, 1), True),
        (PartKind.CURRENT, (0, 1), False),
        (PartKind.SUMMARY, (0, 3), False),
        (PartKind.CHAPTER, None, False),
        (PartKind.NOTE, None, False),
        (PartKind.RECALL, None, False),
        (PartKind.PARTICIPANTS, None, False),
        (PartKind.CONTINUITY, None, False),
        (PartKind.TOOL, None, False),
        (PartKind.EVICTION_NOTE, (0, 1), False),
    ],
)
def test_parts_of_a_prompt_are_shown_only_if_they_are_other_peoples_own_words(
    kind: PartKind, seqs: tuple[int, int] | None, shown: bool
) -> None:
    """Of a prompt, the instructions and the turns of others are shown."""
    first, last = (None, None) if seqs is None else (Seq(seqs[0]), Seq(seqs[1]))
    part = make_part("user", kind, SECRET, seq_from=first, seq_to=last)
    assert SpeechFilter(frozenset({"ada"}), EVERYBODY).prompt_part(part, SAID) == (SECRET if shown else None)
    assert SpeechFilter(frozenset(), EVERYBODY).prompt_part(part, SAID) == SECRET


def test_quotes_from_other_sessions_are_left_out_for_anybody_who_opted_out() -> None:
    """Quotes may hold words of people who never spoke in this session."""
    visible = SpeechFilter(frozenset({"chloe"}), EVERYBODY)
    assert visible.prompt_part(make_part("user", PartKind.RECALL, SECRET), SAID) is None
    assert visible.prompt_part(make_part("user", PartKind.SUMMARY, SECRET), SAID) == SECRET


def test_results_of_tools_are_shown_to_the_operator_alone() -> None:
    """Whoever manages a server and may read all that was said there need not be allowed to use every tool."""
    part = make_part("tool", PartKind.TOOL, SECRET)
    assert SpeechFilter(frozenset(), EVERYBODY).prompt_part(part, SAID) == SECRET
    assert SpeechFilter(frozenset(), EVERYBODY, is_operator=False).prompt_part(part, SAID) is None
