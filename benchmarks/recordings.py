"""The recordings of a run and their texts: real ones from a folder, or those of the bundled scenarios."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rehearsal.people.clip import FRAME_S, FRAME_SAMPLES, read_sound, voiced_frames
from rehearsal.script.recordings import MANIFEST, scenario_from_recordings
from rehearsal.script.scenario_file import load_scenario, scenario_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

# Scenarios whose audio is bundled with the package, spoken by three synthetic voices.
BUNDLED = ("evening", "hello", "interrupted")
# How the source of a recording begins in a manifest if nobody spoke it.
SYNTHETIC_SOURCE = "synthetic voice"
# The interruption must be long enough to count as one.
INTERRUPTION = "I bought a green bicycle at the market this morning."
QUESTION = "Roomtone, what colour is the bicycle that I bought?"


@dataclass(frozen=True, slots=True)
class SpeechRecording:
    """One piece of recorded speech and its reference text."""

    path: Path
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class RecordingSet:
    """All recordings of a run, with the speakers taking turns. `real`: spoken by people, not by synthetic voices."""

    recordings: tuple[SpeechRecording, ...]
    real: bool

    def some(self, count: int) -> tuple[SpeechRecording, ...]:
        """Return `count` recordings, spread evenly over the set. If there are too few they repeat; 0 returns all."""
        every = self.recordings
        if not count or count == len(every):
            return every
        if count > len(every):
            return (every * -(-count // len(every)))[:count]
        return tuple(every[int((number + 0.5) * len(every) / count)] for number in range(count))


def load_recordings(speech: Path | None) -> RecordingSet:
    """Return the recordings of a folder, or the bundled ones. Raises `ScenarioError` if the manifest has mistakes."""
    if speech is not None:
        says = scenario_from_recordings(speech, lanes=1).says
        recordings = tuple(SpeechRecording(say.audio, say.who, say.say) for say in says if say.audio is not None)
        return RecordingSet(recordings, real=not _names_synthetic_voices(speech))
    return RecordingSet(tuple(bundled_recordings()), real=False)


def _names_synthetic_voices(folder: Path) -> bool:
    """Return whether the manifest says of a recording that a synthetic voice spoke it."""
    entries = json.loads((folder / MANIFEST).read_text("utf-8"))
    return any(str(entry.get("source", "")).startswith(SYNTHETIC_SOURCE) for entry in entries)


def bundled_recordings() -> Sequence[SpeechRecording]:
    """Return everything that is said in the bundled scenarios."""
    return [
        SpeechRecording(say.audio, say.who, say.say)
        for name in BUNDLED
        for say in load_scenario(scenario_path(name)).says
        if say.audio is not None
    ]


def find_recording(text: str) -> SpeechRecording:
    """Return the bundled recording of `text`. Raises `LookupError`."""
    return next(one for one in bundled_recordings() if one.text == text)


def voiced_after_s(path: Path, seconds: float) -> float:
    """Return how many seconds after the first voiced frame `seconds` of sound have been voiced. Blocks. Raises
    `LookupError` for a recording with less speech.
    """
    voiced = np.flatnonzero(_voiced(read_sound(path)))
    wanted = round(seconds / FRAME_S)
    if len(voiced) < wanted:
        raise LookupError(f"{path} holds less than {seconds:g} s of speech")
    return float(voiced[wanted - 1] + 1 - voiced[0]) * FRAME_S


def voice_end_s(sound: NDArray[np.int16]) -> float:
    """Return when the last voiced frame of a sound (48 kHz mono) ends, in seconds from its start."""
    voiced = np.flatnonzero(_voiced(sound))
    return float(voiced[-1] + 1) * FRAME_S if len(voiced) else 0.0


def _voiced(sound: NDArray[np.int16]) -> NDArray[np.bool_]:
    return voiced_frames(sound, FRAME_SAMPLES)
