"""Which recognitions are computed together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from voice.asr.worker import RecognitionRequest, fit_together
from voice.audio import LISTEN_RATE_HZ


def _lasting(seconds: float) -> RecognitionRequest:
    return RecognitionRequest(np.zeros(round(seconds * LISTEN_RATE_HZ), np.int16), "en", ())


@pytest.mark.parametrize(
    ("first_s", "other_s", "fit"),
    [(0.5, 2.0, True), (2.0, 3.9, False), (2.1, 3.9, True), (3.0, 8.0, False), (25.0, 40.0, True), (1.0, 29.0, False)],
)
def test_sounds_of_like_length_fit_together(first_s: float, other_s: float, fit: bool) -> None:
    """The window counts, and the shortest and the longest sounds have the same one."""
    assert fit_together(_lasting(first_s), _lasting(other_s)) is fit
    assert fit_together(_lasting(other_s), _lasting(first_s)) is fit


def test_careful_hearings_and_those_without_a_glossary_stay_apart() -> None:
    """The one has another window and more hypotheses, the other nothing that comes before the text."""
    plain = _lasting(3.0)
    with_words = replace(plain, glossary=("Roomtone",))
    careful = replace(plain, careful=True)
    assert fit_together(with_words, replace(plain, language=None, glossary=("Valheim", "Xiomara")))
    assert not fit_together(plain, with_words)
    assert not fit_together(plain, careful)
    assert not fit_together(careful, careful)
