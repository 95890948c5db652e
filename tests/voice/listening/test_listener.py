"""A room's listeners share one model and keep their speakers apart; what people say together becomes one turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.vad import LoudnessVad
from tests.voice.recordings import silence, voiced
from voice.listening.coalesce import UtteranceCoalescer
from voice.listening.listener import PEOPLE_A_PIECE, RoomListener
from voice.listening.utterance import Utterance
from voice.listening.vad import WindowRun
from voice.transport.audio_events import SpeakerLeft, SpeechFrames, TalkspurtEnded


class _CountingVad(LoudnessVad):
    def __init__(self) -> None:
        super().__init__()
        self.runs_per_call: list[int] = []

    def score(self, runs: Sequence[WindowRun]) -> list[list[float]]:
        self.runs_per_call.append(len(runs))
        return super().score(runs)


def _frames(user_id: int, at: float, seconds: float) -> SpeechFrames:
    return SpeechFrames(user_id, user_id, at, voiced(seconds, hz=100.0 * user_id))


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
    ears.tick(14.0)
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
        for events in _crowd_falls_silent(people).tick_in_pieces(13.0)
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
    pieces = ears.tick_in_pieces(13.0)
    events = next(pieces)
    events += ears.hear([SpeakerLeft(people[-1], 13.0), SpeakerLeft(people[0], 13.0)], now=13.0)
    events += [event for piece in pieces for event in piece]
    assert sorted(event.user_id for event in events if isinstance(event, Utterance)) == list(people)


ADA, BO = 1, 2
LONGEST_S = 10.0


@dataclass(frozen=True)
class Said:
    user_id: int
    text: str
    started_at: float = 0.0
    ended_at: float = 1.0


def _coalescing() -> UtteranceCoalescer[Said]:
    return UtteranceCoalescer(longest_wait_s=LONGEST_S)


def test_who_has_finished_waits_for_who_has_not() -> None:
    """Overlapping utterances form one turn, ordered by their start, with each speaker's own words."""
    moments = _coalescing()
    bo, ada = Said(BO, "So do I.", 0.5, 1.0), Said(ADA, "I like the tall lighthouse best.", 0.0, 2.0)
    moments.add(bo, urgent=False, now=1.0)
    assert moments.release(anybody_speaks=True, now=1.1) == ()
    moments.add(ada, urgent=False, now=2.1)
    assert moments.release(anybody_speaks=False, now=2.1) == (ada, bo)


def test_who_calls_the_bot_does_not_wait() -> None:
    """An utterance with the bot's name ends the turn together with everything held before it. Later words join the next
    turn.
    """
    moments = _coalescing()
    bo, ada = Said(BO, "So do I.", 0.5), Said(ADA, "Roomtone, what time is it?", 0.9)
    moments.add(bo, urgent=False, now=1.0)
    moments.add(ada, urgent=True, now=1.5)
    assert moments.release(anybody_speaks=True, now=1.5) == (bo, ada)
    moments.add(Said(BO, "Late, surely.", 1.4), urgent=False, now=2.0)
    assert moments.release(anybody_speaks=True, now=2.0) == ()


def test_an_open_microphone_holds_nobody_up_for_ever() -> None:
    """A turn ends at most ten seconds after its first words, even while somebody still speaks."""
    moments = _coalescing()
    moments.add(Said(ADA, "One."), urgent=False, now=1.0)
    moments.add(Said(ADA, "Two."), urgent=False, now=9.0)
    assert moments.release(anybody_speaks=True, now=1.0 + LONGEST_S - 0.1) == ()
    assert len(moments.release(anybody_speaks=True, now=1.0 + LONGEST_S)) == 2


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 5), st.booleans(), st.booleans()), max_size=30))
def test_nothing_is_lost_and_nothing_twice(steps: list[tuple[int, float, bool, bool]]) -> None:
    """Each utterance comes out exactly once and never later than the longest wait."""
    moments = _coalescing()
    out: list[Said] = []
    since: dict[Said, float] = {}
    now = 0.0
    for number, (user, pause, urgent, speaks) in enumerate(steps):
        now += pause
        said = Said(user, f"number {number}", now, now + 0.5)
        moments.add(said, urgent=urgent, now=now)
        since[said] = now
        moment = moments.release(anybody_speaks=speaks, now=now)
        assert list(moment) == sorted(moment, key=lambda one: one.started_at)
        out += moment
        assert all(now - at < LONGEST_S for held, at in since.items() if held not in out)
    out += moments.flush()
    assert sorted(one.text for one in out) == sorted(f"number {number}" for number in range(len(steps)))
