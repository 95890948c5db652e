"""The recordings of a run and their texts: real ones from a folder, or those of the bundled scenarios. And how much of
them was heard.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bot.brain.settings import BrainSettings
from rehearsal.people.clip import FRAME_S, FRAME_SAMPLES, read_sound, voiced_frames
from rehearsal.script.scenario_file import (
    ScenarioError,
    load_scenario,
    mistake,
    read_text,
    scenario_path,
    validation_mistakes,
)
from rehearsal.words import WordErrors, sum_word_errors, word_errors
from voice.asr.glossary import choose_glossary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.report import Json

MANIFEST = "manifest.json"
# Who is in the benchmarks' room, and where it is.
PEOPLE = ("Ada", "Ben", "Chloe", "Dmitri", "Elin", "Farid")
SERVER, CHANNEL = "The local guild", "Evening"
# What the recogniser gets in the benchmarks without a room. In a room there is always one: it costs prompt tokens, and
# without it Whisper writes fewer marks, so that fewer ends are sure.
USUAL_GLOSSARY = choose_glossary(wake_names=BrainSettings().names, display_names=PEOPLE[:4], words=(SERVER, CHANNEL))
# Scenarios whose audio is bundled with the package, spoken by three synthetic voices.
BUNDLED = ("evening", "hello", "interrupted")
# How the source of a recording begins in a manifest if nobody spoke it.
SYNTHETIC_SOURCE = "synthetic voice"
# The interruption must be long enough to count as one.
INTERRUPTION = "I bought a green bicycle at the market this morning."
QUESTION = "Roomtone, what colour is the bicycle that I bought?"


@dataclass(frozen=True, slots=True)
class SpeechRecording:
    """One piece of recorded speech and its words; empty: nobody has written them. `addressed`: a room would answer
    it.
    """

    path: Path
    speaker: str
    text: str
    addressed: bool = False


@dataclass(frozen=True, slots=True)
class RecordingSet:
    """All recordings of a run, with the speakers taking turns. `name`: of their folder. `real`: spoken by people, not
    by synthetic voices.
    """

    name: str
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


class ManifestEntry(BaseModel):
    """One recording of a folder. Other keys are ignored. Without `addressed` nobody would answer it. `text_is`: what
    `text` has instead of the words.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    file: str = Field(min_length=1)
    speaker: str = Field(min_length=1)
    text: str = Field(min_length=1)
    text_is: str = ""
    source: str = ""
    addressed: bool = False


_ENTRIES = TypeAdapter(Annotated[list[ManifestEntry], Field(min_length=1)])


def load_recordings(speech: Path | None) -> RecordingSet:
    """Return the recordings of a folder, or the bundled ones. Raises `ScenarioError` if the manifest has mistakes."""
    if speech is None:
        return RecordingSet("bundled scenarios", tuple(bundled_recordings()), real=False)
    path = speech / MANIFEST
    try:
        entries = _ENTRIES.validate_json(read_text(path))
    except ValidationError as exc:
        raise ScenarioError(validation_mistakes(exc, path)) from exc
    missing = [each.file for each in entries if not (speech / each.file).is_file()]
    if missing:
        raise ScenarioError(tuple(mistake(path, "", f'there is no file "{file}" in its folder') for file in missing))
    rounds: dict[str, int] = {}
    ranked = []
    for position, entry in enumerate(entries):
        rounds[entry.speaker] = rounds.get(entry.speaker, 0) + 1
        ranked.append((rounds[entry.speaker], position))
    # The first recording of each speaker, then the second of each, and so on.
    in_turn = [entries[position] for _, position in sorted(ranked)]
    recordings = tuple(
        SpeechRecording((speech / each.file).resolve(), each.speaker, "" if each.text_is else each.text, each.addressed)
        for each in in_turn
    )
    return RecordingSet(
        speech.resolve().name, recordings, real=not any(each.source.startswith(SYNTHETIC_SOURCE) for each in entries)
    )


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
    voiced = np.flatnonzero(voiced_frames(read_sound(path), FRAME_SAMPLES))
    wanted = round(seconds / FRAME_S)
    if len(voiced) < wanted:
        raise LookupError(f"{path} holds less than {seconds:g} s of speech")
    return float(voiced[wanted - 1] + 1 - voiced[0]) * FRAME_S


def voice_end_s(sound: NDArray[np.int16]) -> float:
    """Return when the last voiced frame of a sound (48 kHz mono) ends, in seconds from its start."""
    voiced = np.flatnonzero(voiced_frames(sound, FRAME_SAMPLES))
    return float(voiced[-1] + 1) * FRAME_S if len(voiced) else 0.0


@dataclass(slots=True)
class HeardWords:
    """The word errors of each recording. `lost`: recordings without any text. `unlike`: texts with at least as many
    errors as words were said, as gibberish has.
    """

    errors: list[WordErrors] = field(default_factory=list)
    lost: int = 0
    unlike: int = 0

    def add(self, said: str, heard: str) -> None:
        """Add one recording. `said`: empty: nobody has written its words, and only a text that is lost counts."""
        errors = word_errors(said, heard if said else "")
        self.errors.append(errors)
        self.lost += not heard
        self.unlike += bool(said and heard) and errors.errors >= errors.words

    @property
    def rate(self) -> float:
        """Return the word error rate over all recordings; a lost one counts with all its words."""
        return sum_word_errors(self.errors).rate

    def figures(self) -> dict[str, Json]:
        """Return the figures for the report."""
        return {
            "recordings": len(self.errors),
            "words": sum_word_errors(self.errors).words,
            "word_error_rate": round(self.rate, 4),
            "without_text": self.lost,
            "unlike_what_was_said": self.unlike,
        }
