"""A room's listeners share one model and keep their speakers apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.fakes.vad import LoudnessVad
from tests.voice.recordings import silence, voiced
from voice.listening.listener import PEOPLE_A_PIECE, RoomListener
from voice.listening.utterance import Utterance
from voice.transport.audio_events import SpeakerLeft, SpeechFrames, TalkspurtEnded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from voice.listening.vad import WindowRun


class _CountingVad(LoudnessVad):
    def __init__(self) -> None:
        super().__init__()
        self.runs_per_call: list[int] = []

    def score(self, runs: Sequence[WindowRun]) -> list[list[float]]:
        self.runs_per_call.append(len(runs))
        return super().score(runs)


def _frames(user_id: int, at: float, seconds: float) -> SpeechFrames:
    return SpeechFrames(user_id, user_id, at, voiced(seconds, hz=100.0 * user_id))


def test_people_who_talk_at_once_are_heard_each() -> None:
    """Overlapping speech of three people gives three utterances, each with only its speaker's sound."""
    ears = RoomListener(LoudnessVad())
    people = (1, 2, 3)
    ears.hear([_frames(user, 10.0, 2.048) for user in people], now=12.1)
    assert ears.speaking == set(people)
    events = ears.hear([SpeechFrames(user, user, 12.048, silence(1)) for user in people], now=13.1)
    utterances = {event.user_id: event for event in events if isinstance(event, Utterance)}
    assert set(utterances) == set(people)
    assert len({utterance.id for utterance in utterances.values()}) == len(people)
    for user in people:
        sound = voiced(2.048, hz=100.0 * user)
        np.testing.assert_array_equal(utterances[user].pcm[: len(sound)], sound)


def test_a_batch_is_one_call_of_the_model() -> None:
    """The windows of all speakers go to the model in one call, so that it can stack them."""
    detector = _CountingVad()
    ears = RoomListener(detector)
    ears.hear([_frames(user, 10.0, 0.2) for user in range(1, 6)], now=10.3)
    assert detector.runs_per_call == [5]


def test_how_long_everybody_has_spoken_is_told() -> None:
    """The listener reports how long each person has spoken. Only voiced sound counts, and people who have finished are
    left out.
    """
    ears = RoomListener(LoudnessVad())
    ears.hear([_frames(1, 10.0, 0.16), _frames(2, 10.0, 1.0)], now=11.0)
    ears.hear([SpeechFrames(2, 2, 11.0, silence(0.1)), _frames(2, 11.1, 0.5)], now=11.6)
    assert ears.voiced_s[1] == 5 * 0.032
    assert 1.45 <= ears.voiced_s[2] <= 1.57
    ears.hear([TalkspurtEnded(user, user, 11.6) for user in (1, 2)], now=11.6)
    ears.tick(13.0)
    assert ears.voiced_s == {}


def _crowd_falls_silent(people: range) -> RoomListener:
    ears = RoomListener(LoudnessVad())
    ears.hear([_frames(user, 10.0, 1.0) for user in people], now=11.0)
    ears.hear([TalkspurtEnded(user, user, 11.0) for user in people], now=11.0)
    return ears


def test_a_crowd_that_falls_silent_ends_in_pieces() -> None:
    """When forty people fall silent together, each piece ends the speech of at most sixteen, and everybody's once."""
    people = range(1, 41)
    ended = [
        [event.user_id for event in events if isinstance(event, Utterance)]
        for events in _crowd_falls_silent(people).tick_in_pieces(12.0)
    ]
    assert max(map(len, ended)) == PEOPLE_A_PIECE
    assert [user_id for piece in ended for user_id in piece] == list(people)


def test_where_every_tick_is_late_speech_ends_late_and_not_never() -> None:
    """An event loop that has its turn every 0.6 s stands still all the time, and whoever has spoken waits for the end
    of it for some seconds.
    """
    ears = RoomListener(LoudnessVad())
    ears.hear([_frames(1, 10.0, 1.0), TalkspurtEnded(1, 1, 11.0)], now=11.0)
    ended_at = [
        now
        for now in (11.0 + 0.6 * step for step in range(50))
        if any(isinstance(event, Utterance) for event in ears.tick(now))
    ]
    assert len(ended_at) == 1
    assert 21.0 <= ended_at[0] <= 23.0


def test_who_leaves_between_two_pieces_ends_once() -> None:
    people = range(1, 2 * PEOPLE_A_PIECE + 1)
    ears = _crowd_falls_silent(people)
    pieces = ears.tick_in_pieces(12.0)
    events = next(pieces)
    events += ears.hear([SpeakerLeft(people[-1], 12.0), SpeakerLeft(people[0], 12.0)], now=12.0)
    events += [event for piece in pieces for event in piece]
    assert sorted(event.user_id for event in events if isinstance(event, Utterance)) == list(people)
