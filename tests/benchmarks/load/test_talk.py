"""What the members of the crowd say, and when they pause."""

from __future__ import annotations

from itertools import groupby

from benchmarks.load.talk import SILENCE_FRAMES, Talk, with_pauses, without_pauses
from voice.transport.opus import SILENCE_FRAME

# Three recordings of two to three seconds. Each packet is of its recording.
RECORDINGS = ((b"one",) * 100, (b"two",) * 120, (b"three",) * 150)
FRAMES = 2000
AFTERWARDS = (SILENCE_FRAME,) * SILENCE_FRAMES


def _lengths(talk: Talk, *, pauses: bool) -> list[int]:
    """Return how many frames each pause or stretch of speech has, with the first and the last, which may be cut."""
    parts = groupby(talk, key=lambda packet: packet is None or packet == SILENCE_FRAME)
    return [len(list(part)) for paused, part in parts if paused is pauses]


def test_who_does_not_pause_speaks_all_the_time_each_from_elsewhere() -> None:
    talks = without_pauses(RECORDINGS, people=2, frames=30)
    assert [talk[30:] for talk in talks] == [AFTERWARDS] * 2
    assert talks[0][:30] == (b"one",) * 30
    assert talks[1][:30] == (b"two",) * 30


def test_everybody_speaks_for_seconds_and_pauses_for_about_one() -> None:
    """Whole recordings make the stretches, so an utterance ends where a sentence does."""
    for talk in with_pauses(RECORDINGS, people=20, frames=FRAMES):
        assert len(talk) == FRAMES + SILENCE_FRAMES
        stretches, pauses = _lengths(talk, pauses=False)[1:-1], _lengths(talk, pauses=True)[:-1]
        assert len(stretches) >= 3
        assert all(100 <= frames <= 370 for frames in stretches)
        assert all(40 <= frames <= 90 for frames in pauses)


def test_a_talkspurt_ends_with_silence_frames_and_then_nothing_is_sent() -> None:
    [talk] = with_pauses(RECORDINGS, people=1, frames=FRAMES)
    ends = [at for at in range(1, FRAMES) if talk[at] == SILENCE_FRAME != talk[at - 1]]
    assert ends
    for at in ends:
        assert talk[at : at + SILENCE_FRAMES] == AFTERWARDS
        assert talk[at + SILENCE_FRAMES] is None


def test_people_pause_at_different_moments_and_always_at_the_same() -> None:
    """In every second somebody's speech ends, and a second run hears the same."""
    talks = with_pauses(RECORDINGS, people=50, frames=FRAMES)
    ends = {at // 50 for talk in talks for at in range(1, FRAMES) if talk[at] == SILENCE_FRAME != talk[at - 1]}
    assert ends == set(range(FRAMES // 50))
    assert talks == with_pauses(RECORDINGS, people=50, frames=FRAMES)


def test_who_pauses_when_all_is_over_sends_nothing_more() -> None:
    for talk in with_pauses(RECORDINGS, people=50, frames=FRAMES):
        assert talk[FRAMES:] == ((None,) * SILENCE_FRAMES if talk[FRAMES - 1] is None else AFTERWARDS)
