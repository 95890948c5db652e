"""The mel spectrogram has Whisper's shape, scale and bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.voice.recordings import bicycle, voiced
from voice.listening.mel import BANDS, log_mel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from voice.audio import Pcm


def _sound(pcm: Pcm) -> NDArray[np.float32]:
    return pcm.astype(np.float32) / np.float32(32_768)


def test_a_column_every_ten_milliseconds() -> None:
    """The spectrogram has one column for every 10 ms, so 8 s of sound give 800 columns of 80 bands."""
    picture = log_mel(np.zeros(128_000, dtype=np.float32))
    assert picture.shape == (BANDS, 800)
    assert picture.dtype == np.float32


def test_the_range_is_eight_decades() -> None:
    """Everything more than 80 dB below the loudest value is raised to one floor, which is 2 below the maximum after
    scaling.
    """
    picture = log_mel(_sound(bicycle()))
    assert np.isclose(picture.max() - picture.min(), 2.0)


def test_a_tone_lights_its_band() -> None:
    """A tone appears in its band: 440 Hz is 6.6 of 45.2 mels, so band 11; 4 kHz is 35.2 mels, so band 62."""
    for hz, band in ((440.0, 11), (4000.0, 62)):
        picture = log_mel(_sound(voiced(1.0, hz=hz)))
        assert abs(int(picture[:, 50].argmax()) - band) <= 1
