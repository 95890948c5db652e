"""The bundled scenario `evening`, which is backed up meanwhile."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest

from rehearsal.people.clip import FRAME_S, FRAME_SAMPLES, read_sound, voiced_frames
from tests.bot.cli.memory.stored_evening import told
from tests.scenarios.backups import assert_a_bot_goes_on, back_up_meanwhile
from tests.scenarios.program import Program, ProgramOutcome

pytestmark = pytest.mark.rehearsal

# The bot's times are those of its own frames; a busy listener gets them later.
EARLY_S, LATE_S = 0.2, 1.0


def test_the_evening_passes(
    tmp_path: Path, whisper_model_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every expectation of the scenario is met, and the exit status is 0, although the bot is backed up meanwhile. A
    second bot goes on with the last backup.

    The run takes minutes, so the same run is also used for further checks.
    """

    def command(data: Path, *words: str, status: int = 0) -> str:
        monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(data))
        return " ".join(told(capsys, *words, status=status).split())

    trial, restored = tmp_path / "trial", tmp_path / "restored"
    playing = Program.rehearse(tmp_path / "evening", "evening", "--keep", str(trial))
    copies = back_up_meanwhile(playing, trial, tmp_path, command)
    good = playing.wait()
    assert good.status == 0, good.printed
    assert good.report["passed"]
    assert all(line["passed"] for line in good.report["expectations"])
    assert_everybody_was_heard_once_and_as_themselves(good)
    assert_a_compaction_landed_and_only_the_summary_knew_the_answer(good)
    assert_latency_is_told_by_stage(good)
    assert_each_caption_has_its_sound(trial)
    assert "Restored and checked: 1 session with " in command(restored, "restore", str(copies[-1]))
    asyncio.run(assert_a_bot_goes_on(restored, trial, whisper_model_dir))


def assert_everybody_was_heard_once_and_as_themselves(good: ProgramOutcome) -> None:
    """Each live line was heard once, under its speaker, with few wrong words, and every frame was decrypted."""
    utterances = good.report["utterances"]
    assert len(utterances) >= 17
    assert all(one["transcript"] and not one["twice"] for one in utterances)
    assert len({one["speaker"] for one in utterances}) >= 3
    assert good.report["wer"] < 0.15
    assert good.report["packets"]["dave_failures"] == 0
    assert good.report["packets"]["received"] > 2000


def assert_a_compaction_landed_and_only_the_summary_knew_the_answer(good: ProgramOutcome) -> None:
    """The cursor moves from 0 to 10 during the run.

    The question about the past is answered from what was folded alone (the summary, and the notes on participants that
    are drawn from it), and another participant hears the fact.
    """
    first = good.report["compactions"][0]
    assert (first["old_cursor"], first["new_cursor"], first["covered_through_turn"]) == (0, 10, 9)
    assert 0 < first["summary_chars"] <= 1200
    answer = good.report["bot_turns"][-1]
    assert "lisbon" in answer["heard_by_others"].lower()
    holders = {part["kind"] for part in answer["payload"] if "lisbon" in part["content"].lower()}
    assert "summary" in holders
    assert holders <= {"summary", "participants"}
    assert len(good.report["summary"]) <= 1200


def assert_latency_is_told_by_stage(good: ProgramOutcome) -> None:
    """The report has the time to the text of every line, and the time to the first audio of the answers."""
    latency = good.report["latency"]
    assert latency["end_to_text_ms"]["count"] == len(good.report["utterances"])
    assert 0 < latency["end_to_text_ms"]["p50"] <= latency["end_to_text_ms"]["p95"]
    assert 0 < latency["end_to_first_audio_ms"]["p50"] <= latency["end_to_first_audio_ms"]["p95"]


def assert_each_caption_has_its_sound(trial: Path) -> None:
    """Everybody's lines and the bot's answers are heard when the captions have them, and nothing else is."""
    loud = voiced_frames(read_sound(trial / "recording.ogg"), FRAME_SAMPLES)
    captioned = np.zeros(len(loud), np.bool_)
    times = re.findall(r"00:(\d\d):(\S+) --> 00:(\d\d):(\S+)", (trial / "recording.vtt").read_text("utf-8"))
    for minute, second, end_minute, end_second in times:
        begin, end = 60 * int(minute) + float(second), 60 * int(end_minute) + float(end_second)
        captioned[int((begin - EARLY_S) / FRAME_S) : int((end + LATE_S) / FRAME_S)] = True
        assert loud[int(begin / FRAME_S) : int(end / FRAME_S)].mean() > 0.5, begin
    assert len(times) >= 25
    assert not (loud & ~captioned).any()
