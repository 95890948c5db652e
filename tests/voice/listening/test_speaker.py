"""One person's audio timeline: gaps become silence, the clock ends speech, and chunk sizes do not matter."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.vad import LoudnessVad
from tests.voice.recordings import bicycle, silence, voiced
from voice.audio import LISTEN_FRAME_SAMPLES, LISTEN_RATE_HZ, Pcm
from voice.listening.endpointing import ENDPOINTING, EndpointingParameters
from voice.listening.listener import RoomListener
from voice.listening.utterance import (
    DropReason,
    ListeningEvent,
    PauseBegan,
    PauseEnded,
    SpeechStarted,
    Utterance,
    UtteranceDropped,
)
from voice.listening.vad import SileroVad, SpeechProbability, StackedSileroVad
from voice.transport.audio_events import SpeakerLeft, SpeechFrames, TalkspurtEnded

ADA = 7
FRAME_S = 0.02


def _ears(detector: SpeechProbability | None = None, listening: EndpointingParameters = ENDPOINTING) -> RoomListener:
    return RoomListener(detector or LoudnessVad(), listening)


def _frames(at: float, pcm: Pcm) -> SpeechFrames:
    return SpeechFrames(ADA, 1, at, pcm)


def _utterances(events: list[ListeningEvent]) -> list[Utterance]:
    return [event for event in events if isinstance(event, Utterance)]


@pytest.fixture
def ears() -> RoomListener:
    """A listener that hears by loudness."""
    return _ears()


def test_a_sentence_becomes_an_utterance_once_it_is_silent(ears: RoomListener) -> None:
    """The utterance holds the speech with the sound's own times and is returned after a long silence."""
    events = ears.hear([_frames(10.0, np.concatenate([silence(1), voiced(2), silence(0.4)]))], now=13.4)
    assert [type(event) for event in events] == [SpeechStarted, PauseBegan]
    assert ears.speaking == {ADA}
    short_s = round(ENDPOINTING.end_silence_s - 0.5, 2)
    assert ears.hear([_frames(13.4, silence(short_s))], now=13.4 + short_s) == []
    [utterance] = ears.hear([_frames(13.4 + short_s, silence(0.2))], now=14.9)
    assert isinstance(utterance, Utterance)
    assert (utterance.user_id, utterance.cut) == (ADA, False)
    assert utterance.started_at == pytest.approx(11.0, abs=0.04)
    assert utterance.ended_at == pytest.approx(13.0, abs=0.04)
    assert utterance.closed_at == 14.9
    assert len(utterance.pcm) / LISTEN_RATE_HZ == pytest.approx(2.4, abs=0.1)
    assert ears.speaking == frozenset()


def test_the_clock_ends_speech_when_packets_stop(ears: RoomListener) -> None:
    """After a talkspurt's end, time alone closes the utterance, because Discord sends nothing during silence."""
    ears.hear([_frames(10.0, voiced(2)), TalkspurtEnded(ADA, 1, 12.1)], now=12.1)
    over_at = 12.0 + ENDPOINTING.end_silence_s
    assert [type(event) for event in ears.tick(over_at)] == [PauseBegan]
    [utterance] = ears.tick(over_at + 0.1)
    assert isinstance(utterance, Utterance)
    assert utterance.ended_at == pytest.approx(12.0, abs=0.04)
    assert utterance.closed_at == over_at + 0.1


@pytest.mark.parametrize("tick_first", [True, False])
@pytest.mark.parametrize("paused", [True, False])
def test_a_standstill_of_the_event_loop_cuts_no_speech(ears: RoomListener, tick_first: bool, paused: bool) -> None:
    """After two seconds in which the loop did nothing, the clock is ahead of the sound that it then gets in pieces,
    whichever the loop does first, and also if she had paused and went on to speak meanwhile.
    """
    ears.hear([_frames(10.0, voiced(0.8 if paused else 1))], now=11.0)
    events = ears.hear([TalkspurtEnded(ADA, 1, 10.8)], now=11.0) if paused else []
    events += ears.tick(11.0)
    if tick_first:
        events += ears.tick(13.0)
    events += ears.hear([_frames(11.0, voiced(0.1))], now=13.0) + ears.tick(13.02)
    events += ears.hear([_frames(11.1, voiced(1.9)), TalkspurtEnded(ADA, 1, 13.0)], now=13.1)
    assert _utterances(events) == []
    [utterance] = _utterances(ears.tick(13.5) + ears.tick(13.9) + ears.tick(14.3) + ears.tick(14.6))
    assert utterance.started_at == pytest.approx(10.0, abs=0.04)
    assert utterance.ended_at == pytest.approx(13.0, abs=0.04)


def test_a_standstill_holds_nothing_open(ears: RoomListener) -> None:
    """Who had finished before a standstill, and says nothing more, is taken for silent a second after it."""
    ears.hear([_frames(10.0, voiced(1)), TalkspurtEnded(ADA, 1, 11.0)], now=11.1)
    assert ears.tick(11.1) + ears.tick(13.0) + ears.tick(13.45) + ears.tick(13.9) == []
    assert [type(event) for event in ears.tick(14.1)] == [PauseBegan, Utterance]


def test_a_lost_end_mark_holds_nothing_open(ears: RoomListener) -> None:
    """If the `TalkspurtEnded` is lost, ten seconds without frames count as the end of the talkspurt."""
    ears.hear([_frames(10.0, voiced(2))], now=12.0)
    assert ears.tick(21.9) == []
    assert [type(event) for event in ears.tick(22.1)] == [PauseBegan, Utterance]


def test_a_short_gap_is_silence_inside_the_utterance(ears: RoomListener) -> None:
    """Half a second without packets becomes half a second of silence in the utterance, exact to the sample."""
    events = ears.hear([_frames(10.0, voiced(1.024)), _frames(11.524, voiced(1.024))], now=12.6)
    events += ears.hear([TalkspurtEnded(ADA, 1, 12.6)], now=12.6) + ears.tick(20.0)
    [utterance] = _utterances(events)
    pcm = np.concatenate([voiced(1.024), silence(0.5), voiced(1.024)])
    np.testing.assert_array_equal(utterance.pcm[: len(pcm)], pcm)
    assert not utterance.pcm[len(pcm) :].any()


def test_sound_after_a_long_gap_is_the_next_utterance_with_its_own_times() -> None:
    """Sound after an hour's gap is the next utterance with the right times, and the gap costs only a second
    of silence.
    """
    detector = LoudnessVad()
    ears = _ears(detector)
    events = ears.hear([_frames(10.0, voiced(1)), _frames(3610.0, voiced(1))], now=3611.0)
    events += ears.hear([_frames(3611.0, silence(2))], now=3613.0)
    first, second = _utterances(events)
    assert first.ended_at == pytest.approx(11.0, abs=0.04)
    assert second.started_at == pytest.approx(3610.0, abs=0.04)
    assert second.ended_at == pytest.approx(3611.0, abs=0.04)
    assert detector.windows_scored < 160


def test_leaving_ends_the_utterance(ears: RoomListener) -> None:
    ears.hear([_frames(10.0, voiced(1))], now=11.0)
    [utterance] = ears.hear([SpeakerLeft(ADA, 11.05)], now=11.1)
    assert isinstance(utterance, Utterance)
    assert ears.speaking == frozenset()
    assert ears.hear([SpeakerLeft(ADA, 11.2)], now=11.2) == []
    assert ears.tick(20.0) == []


@pytest.mark.parametrize(
    ("seconds", "level", "reason"),
    [(0.1, 0.4, DropReason.TOO_SHORT), (2.0, 0.003, DropReason.NEAR_SILENCE), (2.0, 0.02, None)],
    ids=["a click", "what nobody could hear", "a soft voice"],
)
def test_what_is_no_speech_is_dropped_with_its_reason(seconds: float, level: float, reason: DropReason | None) -> None:
    sound = np.concatenate([voiced(seconds, level=level), silence(2)])
    *_, last = _ears().hear([_frames(10.0, sound)], now=13.0)
    assert (last.reason if isinstance(last, UtteranceDropped) else None) is reason
    assert isinstance(last, Utterance) is (reason is None)


def test_real_speech_is_cut_the_same_however_it_arrives(stacking_vad_model: Path) -> None:
    """With both real models, speech is cut the same from single packets and from one piece."""
    said = np.concatenate([bicycle(), silence(1.5), bicycle(), silence(1.5)])
    for detector in (SileroVad(), StackedSileroVad(stacking_vad_model)):
        expected = _ears(detector).hear([_frames(10.0, said)], now=0.0)
        ears = _ears(detector)
        actual: list[ListeningEvent] = []
        for at in range(0, len(said), LISTEN_FRAME_SAMPLES):
            actual += ears.hear([_frames(10.0 + at / LISTEN_RATE_HZ, said[at : at + LISTEN_FRAME_SAMPLES])], now=0.0)
        assert len(_utterances(expected)) == 2
        assert [_essence(event) for event in actual] == [_essence(event) for event in expected]


def test_a_pause_that_lasts_was_the_utterance(ears: RoomListener) -> None:
    """A pause that lasts becomes an utterance with the same id and the same samples."""
    events = ears.hear([_frames(10.0, np.concatenate([voiced(2), silence(0.3)]))], now=12.3)
    [pause] = [event for event in events if isinstance(event, PauseBegan)]
    assert ears.silence_s(pause.utterance) == pytest.approx(0.3, abs=0.05)
    assert pause.longest_pause_s == 0.0
    assert pause.utterance.closed_at == 12.3
    [utterance] = ears.hear([_frames(12.3, silence(1.5))], now=13.8)
    assert isinstance(utterance, Utterance)
    assert utterance.closed_at == 13.8
    assert ears.silence_s(utterance) is None
    assert utterance.pcm is pause.utterance.pcm
    assert (utterance.id, utterance.ended_at) == (pause.utterance.id, pause.utterance.ended_at)


@dataclass(frozen=True)
class Talkspurt:
    """A part of a test's conversation: `gap_frames` without packets, then one 20 ms frame of sound for each level."""

    gap_frames: int
    levels: tuple[float, ...]

    def pcm(self) -> Pcm:
        return np.concatenate([voiced(FRAME_S, level=level) for level in self.levels])


level_runs = st.lists(st.tuples(st.sampled_from([0.0, 0.0, 0.05, 0.4]), st.integers(1, 50)), min_size=1, max_size=6)
talkspurts = st.lists(
    st.builds(
        lambda gap, runs: Talkspurt(gap, tuple(level for level, count in runs for _ in range(count))),
        st.integers(1, 120),
        level_runs,
    ),
    min_size=1,
    max_size=5,
)


def test_a_pause_in_which_somebody_acts_is_the_utterance(ears: RoomListener) -> None:
    """It ends at once, with the same sound, and what is said later is another one."""
    events = ears.hear([_frames(10.0, np.concatenate([voiced(2), silence(0.3)]))], now=12.3)
    [pause] = [event for event in events if isinstance(event, PauseBegan)]
    [utterance] = ears.end_in_pause(pause.utterance, 12.35)
    assert isinstance(utterance, Utterance)
    assert (utterance.id, utterance.closed_at) == (pause.utterance.id, 12.35)
    assert utterance.pcm is pause.utterance.pcm
    assert ears.end_in_pause(pause.utterance, 12.4) == []
    assert ears.speaking == frozenset()
    later = ears.hear([_frames(12.5, np.concatenate([voiced(1), silence(1.5)]))], now=15.0)
    assert [event.id for event in _utterances(later)] not in ([], [pause.utterance.id])


def test_a_pause_that_is_over_is_not_acted_on(ears: RoomListener) -> None:
    """She has gone on, and then left."""
    events = ears.hear([_frames(10.0, np.concatenate([voiced(2), silence(0.3), voiced(0.2)]))], now=12.5)
    [pause] = [event for event in events if isinstance(event, PauseBegan)]
    assert (ears.silence_s(pause.utterance), ears.end_in_pause(pause.utterance, 12.5)) == (None, [])
    ears.hear([SpeakerLeft(ADA, 12.6)], now=12.6)
    assert (ears.silence_s(pause.utterance), ears.end_in_pause(pause.utterance, 12.6)) == (None, [])


def _essence(event: ListeningEvent) -> tuple[object, ...]:
    match event:
        case Utterance():
            return ("utterance", round(event.started_at, 6), round(event.ended_at, 6), event.pcm.tobytes(), event.cut)
        case UtteranceDropped():
            return ("dropped", round(event.started_at, 6), round(event.ended_at, 6), event.reason)
        case SpeechStarted():
            return ("started", round(event.at, 6))
        case PauseBegan(utterance):
            return ("paused", round(utterance.ended_at, 6), utterance.pcm.tobytes())
        case PauseEnded():
            return ("went on",)


@given(st.lists(talkspurts, min_size=2, max_size=3), st.data())
@settings(max_examples=20, deadline=None)
@pytest.mark.slow
def test_others_in_the_same_batch_change_nothing(people: list[list[Talkspurt]], data: st.DataObject) -> None:
    """Packets of several people that are handed on together, in any mixture, are cut as if each person were alone."""
    listening = EndpointingParameters(max_utterance_s=5, late_packets_s=0.05)
    frames: list[tuple[float, SpeechFrames]] = []
    expected: list[tuple[object, ...]] = []
    end = 0.0
    for user_id, spurts in enumerate(people):
        alone = _ears(listening=listening)
        at = 100.0
        for spurt in spurts:
            at += spurt.gap_frames * FRAME_S
            pcm = spurt.pcm()
            for first in range(len(spurt.levels)):
                piece = pcm[first * LISTEN_FRAME_SAMPLES : (first + 1) * LISTEN_FRAME_SAMPLES]
                frames.append((at + first * FRAME_S, SpeechFrames(user_id, 1, at + first * FRAME_S, piece)))
            at += len(spurt.levels) * FRAME_S
        end = max(end, at)
        own = [frame for _, frame in frames if frame.user_id == user_id]
        events = alone.hear(own, now=0.0) + alone.hear([SpeechFrames(user_id, 1, at + 60, silence(0.1))], now=0.0)
        expected += [(user_id, *_essence(event)) for event in events]
    together = _ears(listening=listening)
    in_order = [frame for _, frame in sorted(frames, key=lambda each: each[0])]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(in_order)), max_size=6)))
    actual: list[tuple[object, ...]] = []
    for first, last in itertools.pairwise([0, *cuts, len(in_order)]):
        actual += [(_of(event), *_essence(event)) for event in together.hear(in_order[first:last], now=0.0)]
    for user_id in range(len(people)):
        last_word = SpeechFrames(user_id, 1, end + 120, silence(0.1))
        actual += [(_of(event), *_essence(event)) for event in together.hear([last_word], now=0.0)]
    assert sorted(actual, key=repr) == sorted(expected, key=repr)


def _of(event: ListeningEvent) -> int:
    """Return the id of the person whose event it is."""
    return event.utterance.user_id if isinstance(event, PauseBegan) else event.user_id


def test_a_pause_comes_with_the_longest_of_the_person_s_own(ears: RoomListener) -> None:
    """Also of what they said just before; silences of articulation do not count."""
    sound = [
        voiced(1),
        silence(0.15),
        voiced(1),
        silence(0.6),
        voiced(1),
        silence(0.3),
        voiced(1),
        silence(2),
        voiced(1),
    ]
    events = ears.hear([_frames(10.0, np.concatenate([*sound, silence(0.3)]))], now=18.4)
    own = [event.longest_pause_s for event in events if isinstance(event, PauseBegan)]
    assert own == [0.0, 0.0, *[pytest.approx(0.6, abs=0.06)] * 3]
