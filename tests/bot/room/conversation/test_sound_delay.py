"""How long sound takes to the room."""

from __future__ import annotations

import numpy as np
import pytest

from bot.room.conversation.sound_delay import MEASURE_EVERY_S, SoundDelay
from voice.audio import LISTEN_RATE_HZ
from voice.transport.audio_events import AudioEvent, SpeakerLeft, SpeechFrames


def sound(captured_at: float, seconds: float = 0.02) -> SpeechFrames:
    """Return silence of one person that began at `captured_at`."""
    return SpeechFrames(1, 11, captured_at, np.zeros(round(seconds * LISTEN_RATE_HZ), np.int16))


def test_the_delay_counts_from_the_end_of_the_sound() -> None:
    """Sound of 20 ms that began 50 ms ago is 30 ms late; sound from the future is not early."""
    measured = SoundDelay().measure([SpeakerLeft(2, 10.0), sound(10.0)], 10.05)
    assert measured is not None
    assert measured.delay_s == pytest.approx(0.03)
    ahead = SoundDelay().measure([sound(10.0)], 10.0)
    assert ahead is not None
    assert ahead.delay_s == 0.0


def test_it_is_measured_once_a_second_and_only_with_sound() -> None:
    """A batch without sound leaves the measurement to the next one."""
    delay = SoundDelay()
    silent: list[AudioEvent] = [SpeakerLeft(2, 10.0)]
    assert delay.measure(silent, 10.0) is None
    assert delay.measure([sound(10.0)], 10.1) is not None
    assert delay.measure([sound(10.5)], 10.1 + MEASURE_EVERY_S / 2) is None
    assert delay.measure([sound(11.0)], 10.1 + MEASURE_EVERY_S) is not None
