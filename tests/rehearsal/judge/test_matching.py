"""Heard utterances are matched to spoken lines by speaker and time, also when they are split, merged or heard twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rehearsal.judge.matching import line_of_other_speaker, match_utterances
from rehearsal.runner.record import MARGIN_S, SpeechSpan

ANNA, BEN = 1, 2


def span(who: int, text: str, start: float, end: float) -> SpeechSpan:
    """Return a span of speech."""
    return SpeechSpan(who, text, start, end)


def test_the_same_stretch_heard_twice_is_told() -> None:
    """Two utterances over the same stretch of sound are marked as heard twice, even if their words differ."""
    said = [span(ANNA, "hello there", 1.0, 3.0)]
    heard = [span(ANNA, "hello there", 1.0, 3.0), span(ANNA, "yellow bear", 1.1, 2.9)]
    assert match_utterances(said, heard).matches[0].twice


def test_speakers_are_never_mixed() -> None:
    """Two people who speak at once keep their own words.

    An utterance under the wrong speaker is unmatched, and the line that was really said can be found.
    """
    said = [span(ANNA, "left", 0.0, 2.0), span(BEN, "right", 0.0, 2.0)]
    right = match_utterances(said, [span(BEN, "right", 0.0, 2.0), span(ANNA, "left", 0.0, 2.0)])
    assert [one.transcript for one in right.matches] == ["left", "right"]
    wrong = span(ANNA, "right", 5.0, 6.0)
    later = [*said, span(BEN, "right", 5.0, 6.0)]
    assert match_utterances(later, [wrong]).strays == (0,)
    assert line_of_other_speaker(wrong, later) == 2


def test_a_phantom_belongs_to_nobody() -> None:
    """An utterance during silence is unmatched and belongs to no line of another speaker."""
    said = [span(ANNA, "hello", 0.0, 1.0)]
    ghost = span(ANNA, "thank you for watching", 9.0, 10.0)
    found = match_utterances(said, [ghost])
    assert found.strays == (0,)
    assert found.matches[0].pieces == ()
    assert line_of_other_speaker(ghost, said) is None


_starts = st.lists(st.floats(0.1, 4.0), min_size=1, max_size=8)


@given(lengths=_starts, cuts=st.lists(st.floats(0.3, 0.7), min_size=8, max_size=8), data=st.data())
def test_every_piece_of_a_quiet_room_finds_its_speech(
    lengths: list[float], cuts: list[float], data: st.DataObject
) -> None:
    """Whatever the cuts and the order of the pieces, each piece matches exactly its own line."""
    said, heard, at = [], [], 0.0
    for number, length in enumerate(lengths):
        who = data.draw(st.sampled_from([ANNA, BEN]))
        middle = at + length * cuts[number]
        said.append(span(who, f"first{number} second{number}", at, at + length))
        heard += [span(who, f"first{number}", at, middle), span(who, f"second{number}", middle, at + length)]
        at += length + 2 * MARGIN_S + 0.1
    order = data.draw(st.permutations(range(len(heard))))
    found = match_utterances(said, [heard[index] for index in order])
    assert found.strays == ()
    assert [one.transcript for one in found.matches] == [one.text for one in said]
    assert sorted(index for one in found.matches for index in one.pieces) == sorted(range(len(heard)))
    assert not any(one.twice for one in found.matches)
