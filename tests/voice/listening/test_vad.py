"""Silero tells speech from silence for each speaker, however the audio is split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.voice.recordings import bicycle, silence
from voice.listening.vad import WINDOW_SAMPLES, SileroVad, StackedSileroVad, VadError, VadState, WindowRun

if TYPE_CHECKING:
    from pathlib import Path

    from voice.audio import Pcm
    from voice.listening.vad import SpeechProbability


@pytest.fixture(scope="module", params=["bundled", "stacked"])
def vad(request: pytest.FixtureRequest, stacking_vad_model: Path) -> SpeechProbability:
    """Return each of the model's two exports in turn."""
    return SileroVad() if request.param == "bundled" else StackedSileroVad(stacking_vad_model)


def _whole_windows(pcm: Pcm) -> Pcm:
    return pcm[: len(pcm) // WINDOW_SAMPLES * WINDOW_SAMPLES]


def test_speech_is_probable_and_silence_is_not(vad: SpeechProbability) -> None:
    """A spoken sentence is mostly over 0.5; digital silence is always under 0.35."""
    spoken, silent = vad.score(
        [WindowRun(VadState(), _whole_windows(bicycle())), WindowRun(VadState(), _whole_windows(silence(2)))]
    )
    assert np.mean(np.array(spoken) > 0.5) > 0.6
    assert max(silent) < 0.35


def test_a_run_scored_window_by_window_is_the_same_run(vad: SpeechProbability) -> None:
    """Scoring window by window gives the same result as scoring the whole run, because the state is kept
    between calls.
    """
    pcm = _whole_windows(bicycle())
    [whole] = vad.score([WindowRun(VadState(), pcm)])
    state = VadState()
    one_by_one = [
        vad.score([WindowRun(state, pcm[at : at + WINDOW_SAMPLES])])[0][0] for at in range(0, len(pcm), WINDOW_SAMPLES)
    ]
    np.testing.assert_allclose(one_by_one, whole, atol=1e-4)


def test_a_run_is_whole_windows(vad: SpeechProbability) -> None:
    """A run that ends with half a window raises `ValueError`."""
    with pytest.raises(ValueError, match="multiple of 512"):
        vad.score([WindowRun(VadState(), silence(0.01))])


def test_an_unreadable_model_is_a_plain_sentence(tmp_path: Path) -> None:
    """The error for a damaged model file names the file and the remedy."""
    broken = tmp_path / "silero.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(VadError, match=r"silero\.onnx could not be read; install faster-whisper again"):
        SileroVad(broken)


def test_runs_of_any_length_are_stacked(stacking_vad_model: Path) -> None:
    """Stacked runs of different lengths, some of them empty, score the same as each run alone."""
    vad = StackedSileroVad(stacking_vad_model)
    pcm = _whole_windows(bicycle())
    lengths = [3, 0, 40, 1]
    alone = [vad.score([WindowRun(VadState(), pcm[: count * WINDOW_SAMPLES])])[0] for count in lengths]
    stacked = vad.score([WindowRun(VadState(), pcm[: count * WINDOW_SAMPLES]) for count in lengths])
    assert [len(one) for one in stacked] == lengths
    for one, other in zip(stacked, alone, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_the_other_export_is_told_apart(stacking_vad_model: Path) -> None:
    """The class for one export refuses the other export and names the inputs that it expects."""
    with pytest.raises(VadError, match="and not"):
        SileroVad(stacking_vad_model)
