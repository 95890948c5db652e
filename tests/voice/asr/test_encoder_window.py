"""The length of the encoder window and the token cap follow from the duration of the speech."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.encoder_window import MAX_TOKENS, EncoderWindow, encoder_window


@pytest.mark.parametrize(
    ("duration_s", "window"),
    [
        (0.0, EncoderWindow(8.0, 12)),
        (1.0, EncoderWindow(8.0, 20)),
        (2.0, EncoderWindow(8.0, 28)),
        (3.0, EncoderWindow(9.0, 36)),
        (6.72, EncoderWindow(12.8, 66)),
        (24.0, EncoderWindow(30.0, 204)),
        (30.0, EncoderWindow(30.0, 252)),
        (45.0, EncoderWindow(30.0, 252)),
    ],
)
def test_window_by_duration(duration_s: float, window: EncoderWindow) -> None:
    """The window is the speech and 6 s more, between 8 s and 30 s; the cap is 12 tokens and 8 more for each second."""
    assert encoder_window(duration_s) == window


@given(st.floats(0, 100))
def test_the_window_holds_the_speech(duration_s: float) -> None:
    """The window holds the speech up to 30 s, the cap fits the model, and the encoder gets an even number of frames."""
    window = encoder_window(duration_s)
    assert window.length_s >= min(duration_s, 30.0)
    assert window.token_cap <= MAX_TOKENS
    assert round(window.length_s * 100) % 2 == 0


def test_negative_speech_is_a_mistake() -> None:
    """A negative duration raises `ValueError`, because it is a bug of the caller."""
    with pytest.raises(ValueError, match="0 s or longer"):
        encoder_window(-0.1)
