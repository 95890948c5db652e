"""The endpointing state machine turns VAD windows into utterances, after a long silence or when somebody acts."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.listening.endpointing import (
    AudioWindow,
    Endpointer,
    EndpointingEvent,
    EndpointingParameters,
    SpeechClosed,
    SpeechDismissed,
    SpeechOpened,
    SpeechPaused,
    SpeechResumed,
    window_count,
)

SETTINGS = EndpointingParameters()
VOICED = AudioWindow(0.9, 0.1)
SILENT = AudioWindow(0.05, 0.0)
END = window_count(SETTINGS.end_silence_s)
PRE_ROLL = window_count(SETTINGS.pre_roll_s)
TAIL = window_count(SETTINGS.tail_s)


PAUSE = window_count(SETTINGS.pause_s)


def _feed_all(endpointing: Endpointer, *windows: AudioWindow) -> list[EndpointingEvent]:
    return [effect for window in windows for effect in endpointing.handle(window)]


def _feed(endpointing: Endpointer, *windows: AudioWindow) -> list[EndpointingEvent]:
    """Feed windows and return the events without those about pauses."""
    return _lasting(_feed_all(endpointing, *windows))


def _lasting(effects: list[EndpointingEvent]) -> list[EndpointingEvent]:
    return [effect for effect in effects if not isinstance(effect, (SpeechPaused, SpeechResumed))]


@pytest.fixture
def endpointing() -> Endpointer:
    """An endpointer that has heard nothing."""
    return Endpointer(SETTINGS)


def test_an_utterance_has_pre_roll_and_tail(endpointing: Endpointer) -> None:
    """An utterance begins 300 ms before the first voiced window and ends 64 ms after the last one."""
    effects = _feed(endpointing, *[SILENT] * 50, *[VOICED] * 40, *[SILENT] * END)
    assert effects == [SpeechOpened(50), SpeechClosed(50 - PRE_ROLL, 90 + TAIL, 50, 90, cut=False)]


def test_a_click_is_dismissed(endpointing: Endpointer) -> None:
    """Four voiced windows are no speech, and their sound can still be part of the next utterance's pre-roll."""
    dip = 7
    effects = _feed(endpointing, *[VOICED] * 4, *[SILENT] * dip, *[VOICED] * 10, *[SILENT] * END)
    assert effects[0] == SpeechDismissed(0, 4)
    assert effects[2] == SpeechClosed(max(0, 4 + dip - PRE_ROLL), 4 + dip + 10 + TAIL, 4 + dip, 4 + dip + 10, cut=False)


def test_unbroken_speech_is_cut_at_its_quietest_point(endpointing: Endpointer) -> None:
    """After 30 s, speech is cut at the quietest point of the last ten seconds, and the rest is the next utterance."""
    loud = [AudioWindow(0.9, 0.2)] * 2000
    loud[800] = loud[801] = loud[802] = AudioWindow(0.9, 0.01)
    loud[300] = loud[301] = loud[302] = AudioWindow(0.9, 0.001)
    effects = _feed(endpointing, *loud[:1000])
    assert effects == [SpeechOpened(0), SpeechClosed(0, 801, 0, 801, cut=True), SpeechOpened(801)]
    assert endpointing.is_speaking
    rest = _feed(endpointing, *[SILENT] * END)
    assert rest == [SpeechClosed(801, 1000 + TAIL, 801, 1000, cut=False)]


def test_an_utterance_that_ends_at_the_limit_is_not_called_cut(endpointing: Endpointer) -> None:
    """If the silence at the end of the speech reaches the 30 s limit, the utterance is not marked as cut and no other
    follows.
    """
    longest = int(SETTINGS.max_utterance_s * 16_000 / 512)
    effects = _feed(endpointing, *[VOICED] * (longest - 10), *[SILENT] * 40)
    closed = [effect for effect in effects if isinstance(effect, SpeechClosed)]
    assert len(closed) == 1
    assert not closed[0].cut
    assert closed[0].last == longest - 10
    assert (endpointing.is_speaking, endpointing.voiced_windows) == (False, 0)


def test_speech_on_which_somebody_acts_ends_in_its_pause(endpointing: Endpointer) -> None:
    """It ends at the time of the act, with the same sound as after the long silence, and what follows is new."""
    _feed(endpointing, *[VOICED] * 20, *[SILENT] * (PAUSE + 2))
    assert endpointing.silent_windows == PAUSE + 2
    assert endpointing.end_in_pause(19) == []
    assert endpointing.end_in_pause(20) == [SpeechClosed(0, 20 + TAIL, 0, 20, cut=False)]
    assert endpointing.end_in_pause(20) == []
    assert (endpointing.is_speaking, endpointing.silent_windows) == (False, 0)
    assert _feed(endpointing, *[SILENT] * END) == []


def test_speech_that_goes_on_cannot_be_ended(endpointing: Endpointer) -> None:
    """Whoever wanted to act on it is too late."""
    _feed(endpointing, *[VOICED] * 20, *[SILENT] * PAUSE, VOICED)
    assert endpointing.end_in_pause(20) == []
    assert endpointing.end_in_pause(21 + PAUSE) == []
    assert endpointing.is_speaking


windows = st.lists(
    st.tuples(st.sampled_from([VOICED, SILENT, AudioWindow(0.4, 0.02), AudioWindow(0.6, 0.3)]), st.integers(1, 60)),
    max_size=60,
).map(lambda runs: [window for window, count in runs for _ in range(count)])


@given(windows, st.randoms(use_true_random=True))
def test_utterances_are_ordered_disjoint_and_bounded_and_cover_all_speech(
    line: list[AudioWindow], random: Random
) -> None:
    """For any input, also if they are ended in pauses at will."""
    settings = EndpointingParameters(max_utterance_s=5)
    endpointing, paused = Endpointer(settings), None
    free_from, covered = 0, set[int]()
    for count, window in enumerate([*line, *[SILENT] * END], start=1):
        effects = endpointing.handle(window)
        paused = next((each for each in reversed(effects) if isinstance(each, SpeechPaused)), paused)
        if paused is not None and random.random() < 0.5:
            effects = [*effects, *endpointing.end_in_pause(paused.last)]
        for effect in effects:
            if isinstance(effect, SpeechClosed):
                assert free_from <= effect.start <= effect.first < effect.last <= effect.end <= count
                assert (effect.end - effect.start) * 0.032 <= settings.max_utterance_s
                free_from = effect.end
                covered.update(range(effect.start, effect.end))
            elif isinstance(effect, SpeechDismissed):
                covered.update(range(effect.first, effect.last))
        assert endpointing.oldest_needed >= free_from
        assert (count - endpointing.oldest_needed) * 0.032 <= settings.max_utterance_s
    assert {index for index, window in enumerate(line) if window.probability >= settings.speech_on} <= covered
