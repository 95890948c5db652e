"""The bundled evening, whole: what must hold on a good network, on a bad one, and what fails without compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import Program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.program import Outcome

pytestmark = pytest.mark.rehearsal


def test_the_evening_passes(tmp_path: Path) -> None:
    """Every expectation of the scenario is met, and the exit status says so. More is read off the same run, which
    takes minutes."""
    good = Program.rehearse(tmp_path, "evening").wait()
    assert good.status == 0, good.printed
    assert good.report["passed"]
    assert all(line["passed"] for line in good.report["expectations"])
    assert_everybody_was_heard_once_and_as_themselves(good)
    assert_a_compaction_landed_and_only_the_summary_knew_the_answer(good)
    assert_latency_is_told_by_stage(good)


def assert_everybody_was_heard_once_and_as_themselves(good: Outcome) -> None:
    """Each live utterance became text once, under its speaker, with few wrong words and no undecrypted frame."""
    utterances = good.report["utterances"]
    assert len(utterances) >= 17
    assert all(one["transcript"] and not one["twice"] for one in utterances)
    assert len({one["speaker"] for one in utterances}) >= 3
    assert good.report["wer"] < 0.15
    assert good.report["packets"]["dave_failures"] == 0
    assert good.report["packets"]["received"] > 2000


def assert_a_compaction_landed_and_only_the_summary_knew_the_answer(good: Outcome) -> None:
    """The cursor goes 0 -> 10 during the run; the question about the past is answered out of the summary alone,
    and another participant hears the fact."""
    first = good.report["compactions"][0]
    assert (first["old_cursor"], first["new_cursor"], first["covered_through_turn"]) == (0, 10, 9)
    assert 0 < first["summary_chars"] <= 1200
    answer = good.report["bot_turns"][-1]
    assert "lisbon" in answer["heard_by_others"].lower()
    holders = [part["kind"] for part in answer["payload"] if "lisbon" in part["content"].lower()]
    assert holders == ["summary"]
    assert len(good.report["summary"]) <= 1200


def assert_latency_is_told_by_stage(good: Outcome) -> None:
    """The report says how long text and first sound took, for every utterance and answer."""
    latency = good.report["latency"]
    assert latency["end_to_text_ms"]["count"] == len(good.report["utterances"])
    assert 0 < latency["end_to_text_ms"]["p50"] <= latency["end_to_text_ms"]["p95"]
    assert 0 < latency["end_to_first_audio_ms"]["p50"] <= latency["end_to_first_audio_ms"]["p95"]


def test_a_rough_network_loses_nobody(tmp_path: Path) -> None:
    """With 5 % loss, padding and reordering every utterance is still heard and nothing is raised."""
    worse = ("--loss", "0.05", "--padding", "0.05", "--reorder", "0.05")
    rough = Program.rehearse(tmp_path, "evening", *worse).wait()
    assert rough.expectation("every_utterance_heard_once")["passed"], rough.printed
    assert rough.expectation("attributed")["passed"]
    assert rough.expectation("nothing_raised")["passed"], rough.expectation("nothing_raised")["detail"]
    assert rough.expectation("dave_failures")["passed"]
    packets = rough.report["packets"]
    assert packets["padded"] > 50
    assert packets["lost"] > 50
    assert packets["concealed"] + packets["recovered"] > 50


def test_a_speech_to_speech_model_knows_what_was_folded(tmp_path: Path) -> None:
    """The same evening answered by a model that hears and speaks: the summary reaches its instructions when it lands,
    and the fact of the folded turns is heard out of it alone. Its session is renewed twice on the way, unnoticed."""
    renewed = ("--set", "realtime.session_s=40")
    by_speech = Program.rehearse(tmp_path, "evening", "--realtime", *renewed).wait()
    assert by_speech.status == 0, by_speech.printed
    assert by_speech.expectation("fact_only_in_summary ask-town")["passed"]
    told = next(part for part in by_speech.report["bot_turns"][-1]["payload"] if part["kind"] == "summary")
    assert told["content"].startswith("Session conversation summary:")
    assert by_speech.report["servers"]["realtime_sessions"] >= 3
    assert by_speech.report["problems"] == []


def test_without_compaction_the_past_is_gone(tmp_path: Path) -> None:
    """With `compaction.mode=off` the same evening fails at just the question whose answer left the window."""
    off = Program.rehearse(tmp_path, "evening", "--set", "compaction.mode=off").wait()
    assert off.status == 1, off.printed
    assert not off.report["passed"]
    assert off.report["compactions"] == []
    assert not off.expectation("answer ask-town")["passed"]
    assert off.expectation("answer ask-concert")["passed"]
