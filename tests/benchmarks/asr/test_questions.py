"""The short questions: which texts are broken, and that the sounds are the same in every run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.asr import questions
from benchmarks.asr.ours import RoomTranscriber
from benchmarks.asr.questions import (
    GLOSSARY,
    ask_questions,
    is_broken,
    make_questions,
    question_sounds,
    question_texts,
    recording_file,
)
from benchmarks.recordings import load_recordings
from bot.settings import ModelsSettings
from rehearsal.words import word_errors
from tests.benchmarks.no_progress import NoProgress
from tests.fakes.recogniser import AnsweringEngine, recognition
from voice.audio import duration_s

ASKED = "Roomtone, who waters the tomatoes?"


@pytest.mark.parametrize(
    ("heard", "broken"),
    [
        (ASKED, False),
        ("Roomtone, who waters tomato?", False),
        ("Roomtone,", True),
        (f"{ASKED} {ASKED}", True),
        ("", True),
    ],
)
def test_a_text_is_broken_that_nobody_could_answer(heard: str, *, broken: bool) -> None:
    """Three words are wrong, or half of them."""
    assert is_broken(word_errors(ASKED, heard)) is broken


async def test_every_question_is_asked_in_twelve_sounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question comes after four silences in three noises, a third of them through Opus, the same in every run. It is
    in the figures of its half.
    """
    monkeypatch.setattr(questions, "question_texts", lambda: question_texts()[:1])
    questions.write_recording(questions.recording_file(tmp_path, 0), np.full(24_000, 3000, np.int16))
    sounds = list(question_sounds(tmp_path))
    assert len(sounds) == 12
    assert {sound.speech_s for sound in sounds} == {0.5}
    assert min(duration_s(sound.pcm) for sound in sounds) >= 0.6
    assert all(np.array_equal(one.pcm, other.pcm) for one, other in zip(sounds, question_sounds(tmp_path), strict=True))
    ours = RoomTranscriber(AnsweringEngine(lambda _: recognition("Roomtone, who?")), "en", GLOSSARY)
    figures = await ask_questions(ours, sounds, NoProgress())
    assert (figures["recordings"], figures["broken"]) == (12, 12)
    assert figures["tuning"] == {"recordings": 12, "broken": 12, "word_error_rate": 0.6}


async def test_a_folder_with_all_recordings_gets_its_manifest(tmp_path: Path) -> None:
    """The voices are not needed then, and what the manifest told before is replaced."""
    for number in range(len(question_texts())):
        recording_file(tmp_path, number).touch()
    (tmp_path / "manifest.json").write_text("[]", "utf-8")
    await make_questions(tmp_path, ModelsSettings(directory=tmp_path / "none"), NoProgress())
    told = load_recordings(tmp_path)
    assert sorted(each.text for each in told.recordings) == sorted(question_texts())
    assert not told.real
