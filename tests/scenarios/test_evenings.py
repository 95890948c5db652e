"""The bundled scenario `evening`, with speech-to-speech and without compaction too, and people on a bad network."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.bot.cli.memory.stored_evening import told
from tests.scenarios.backups import assert_a_bot_goes_on, back_up_meanwhile
from tests.scenarios.program import Program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.program import Outcome

pytestmark = pytest.mark.rehearsal


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
    assert "Restored and checked: 1 session with " in command(restored, "restore", str(copies[-1]))
    asyncio.run(assert_a_bot_goes_on(restored, trial, whisper_model_dir))


def assert_everybody_was_heard_once_and_as_themselves(good: Outcome) -> None:
    """Each live line was heard once, under its speaker, with few wrong words, and every frame was decrypted."""
    utterances = good.report["utterances"]
    assert len(utterances) >= 17
    assert all(one["transcript"] and not one["twice"] for one in utterances)
    assert len({one["speaker"] for one in utterances}) >= 3
    assert good.report["wer"] < 0.15
    assert good.report["packets"]["dave_failures"] == 0
    assert good.report["packets"]["received"] > 2000


def assert_a_compaction_landed_and_only_the_summary_knew_the_answer(good: Outcome) -> None:
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


def assert_latency_is_told_by_stage(good: Outcome) -> None:
    """The report has the time to the text of every line, and the time to the first audio of the answers."""
    latency = good.report["latency"]
    assert latency["end_to_text_ms"]["count"] == len(good.report["utterances"])
    assert 0 < latency["end_to_text_ms"]["p50"] <= latency["end_to_text_ms"]["p95"]
    assert 0 < latency["end_to_first_audio_ms"]["p50"] <= latency["end_to_first_audio_ms"]["p95"]


def test_a_rough_network_loses_nobody(tmp_path: Path) -> None:
    """With 5 % loss, 5 % padding and 5 % reordering, every line is still heard and nothing is raised, although people
    talk over each other.
    """
    worse = ("--loss", "0.05", "--padding", "0.05", "--reorder", "0.05")
    rough = Program.rehearse(tmp_path, "crowd", *worse).wait()
    assert rough.expectation("every_utterance_heard_once")["passed"], rough.printed
    assert rough.expectation("attributed")["passed"]
    assert rough.expectation("nothing_raised")["passed"], rough.expectation("nothing_raised")["detail"]
    assert rough.expectation("dave_failures")["passed"]
    packets = rough.report["packets"]
    assert packets["padded"] > 25
    assert packets["lost"] > 25
    assert packets["concealed"] + packets["recovered"] > 25


def test_a_speech_to_speech_model_knows_what_was_folded(tmp_path: Path) -> None:
    """With a speech-to-speech model, the summary is added to the model's instructions when a compaction is stored.

    The model answers the question about the folded turns from the summary alone. The session is renewed at least twice
    during the run, without a problem.
    """
    renewed = ("--set", "tuning.realtime_session_s=40")
    by_speech = Program.rehearse(tmp_path, "evening", "--realtime", *renewed).wait()
    assert by_speech.status == 0, by_speech.printed
    assert by_speech.expectation("fact_only_in_summary ask-town")["passed"]
    told = next(part for part in by_speech.report["bot_turns"][-1]["payload"] if part["kind"] == "summary")
    assert told["content"].startswith("Session conversation summary:")
    assert by_speech.report["servers"]["realtime_sessions"] >= 3
    assert by_speech.report["problems"] == []


def test_without_compaction_the_past_is_gone(tmp_path: Path) -> None:
    """With `compaction.mode=off`, the run fails only at the question whose answer is no longer in the window.

    Ada said it of herself, so nothing may be remembered about people either.
    """
    off = Program.rehearse(tmp_path, "evening", "--set", "compaction.mode=off", "--set", "people.enabled=false").wait()
    assert off.status == 1, off.printed
    assert not off.report["passed"]
    assert off.report["compactions"] == []
    assert not off.expectation("answer ask-town")["passed"]
    assert off.expectation("answer ask-concert")["passed"]
