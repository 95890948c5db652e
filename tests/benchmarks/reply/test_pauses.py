"""Cutting recordings faster than they are spoken: pauses inside speech, cuts, and when the end is known."""

from __future__ import annotations

import wave
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.progress import NoProgress
from benchmarks.reply.pause_judge import COUNTED_FROM_S
from benchmarks.reply.pauses import PauseListener, measure_pauses
from benchmarks.reply.recordings import load_recordings
from bot.settings import ModelsSettings
from voice.listening.endpointing import EndpointingParameters

if TYPE_CHECKING:
    from pathlib import Path

# The longest pause inside a bundled sentence is 0.4 s.
HASTY = EndpointingParameters(end_silence_s=0.25, pause_s=0.1, tail_s=0.05)
PATIENT = EndpointingParameters(end_silence_s=1.0)


def listener(parameters: EndpointingParameters, folder: Path) -> PauseListener:
    """Return a listener without the models that are not bundled."""
    return PauseListener(ModelsSettings(directory=folder), parameters=parameters)


def test_a_patient_listener_cuts_nothing_and_knows_the_end_late(tmp_path: Path) -> None:
    """A patient listener finds one utterance in a recording and knows its end little more than a second later."""
    heard = listener(PATIENT, tmp_path).hear(load_recordings(None).recordings[0].path)
    assert (heard.utterances, heard.cuts) == (1, 0)
    assert 1.0 <= heard.end_known_s - heard.end_s < 1.15
    assert [is_end for _, is_end in heard.pauses][-1]


def test_shorter_pauses_do_not_count(tmp_path: Path) -> None:
    """A listener that asks about shorter pauses too finds as many inside speech as one that waits for 0.2 s."""
    sooner, later = (
        listener(replace(PATIENT, pause_s=pause_s, tail_s=pause_s), tmp_path) for pause_s in (0.064, COUNTED_FROM_S)
    )
    recordings = load_recordings(None).some(8)
    inside = [later.hear(recording.path).inside for recording in recordings]
    assert [sooner.hear(recording.path).inside for recording in recordings] == inside
    assert sum(inside) > 0


@pytest.mark.asyncio
async def test_a_hasty_listener_cuts_some(tmp_path: Path) -> None:
    """A hasty listener cuts some recordings. The figures have the pauses and cuts, and say that no end-of-turn model
    was used.
    """
    figures = await measure_pauses(
        load_recordings(None).some(6),
        models=ModelsSettings(directory=tmp_path),
        parameters=HASTY,
        progress=NoProgress(),
    )
    assert figures["recordings"] == 6
    assert figures["end_of_turn_model"] is False
    pauses, cuts = figures["pauses_inside"], figures["cut"]
    assert isinstance(pauses, int)
    assert isinstance(cuts, int)
    assert 0 < cuts <= pauses


def test_a_recording_without_speech_is_named(tmp_path: Path) -> None:
    """It has no end to count from. Who brought it learns which one it is, and what to do."""
    noise = tmp_path / "noise.wav"
    with wave.open(str(noise), "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(48_000)
        writer.writeframes(np.random.default_rng(1).normal(0, 1_000, 48_000).astype("<i2").tobytes())
    with pytest.raises(BenchmarkError, match=r"No speech was found in .*noise\.wav\. Take it out of manifest\.json\."):
        listener(PATIENT, tmp_path).hear(noise)
