"""Sample-rate conversion of speech."""

from __future__ import annotations

import numpy as np
import pytest

from voice.speaking.resample import resample


@pytest.mark.parametrize("from_hz", [16_000, 22_050, 24_000])
def test_a_tone_keeps_its_pitch_length_and_level(from_hz: int) -> None:
    """One second of 440 Hz stays one second of 440 Hz at 48 kHz."""
    tone = (8000 * np.sin(2 * np.pi * 440 * np.arange(from_hz) / from_hz)).astype(np.int16)
    out = resample(tone, from_hz, 48_000)
    assert abs(len(out) - 48_000) <= 960
    spectrum = np.abs(np.fft.rfft(out[2000:42000].astype(np.float64)))
    assert abs(int(spectrum.argmax()) * 48_000 / 40_000 - 440) < 3
    assert 7000 < int(np.abs(out).max()) < 9000


def test_the_same_rate_is_left_alone() -> None:
    """Sound that already has the right rate is returned without a copy."""
    pcm = np.arange(5, dtype=np.int16)
    assert resample(pcm, 48_000, 48_000) is pcm
