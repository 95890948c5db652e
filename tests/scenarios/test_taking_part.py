"""Bundled scenarios without speech-to-speech. Each is played completely, and judged by what people heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.scenarios.program import ProgramOutcome

pytestmark = pytest.mark.rehearsal


def assert_people_who_talked_over_each_other_are_turns_with_several_voices(outcome: ProgramOutcome) -> None:
    """Check that both of two overlapping people were heard, and that the question to the bot was answered."""
    report = outcome.report
    assert {turn["answers"] for turn in report["bot_turns"]} == {"ask-ladder", "ask-chairs"}
    assert len({one["speaker"] for one in report["utterances"]}) == 4


def assert_both_who_asked_were_told_one_after_the_other(outcome: ProgramOutcome) -> None:
    """Check that two questions were answered in one reply, or in two, the second at most 3 s after the first."""
    first, *more = outcome.report["bot_turns"][2:-2]
    assert not first["interrupted"]
    for turn in more:
        assert 0 < turn["at_s"] - first["fell_silent_s"] < 3


def assert_a_voice_in_trouble_was_told_in_the_log_and_not_to_people(outcome: ProgramOutcome) -> None:
    """Check that people heard every answer in another voice and that the log has the reason."""
    report = outcome.report
    assert len(report["bot_turns"]) == 4
    assert all(turn["heard_by_others"] for turn in report["bot_turns"])
    assert report["problems"]


def assert_an_absent_model_was_told_once_and_without_its_address(outcome: ProgramOutcome) -> None:
    """Check that people heard once that the model is away, and read no address and no setting."""
    said = [turn["text"] for turn in outcome.report["bot_turns"]]
    assert sum("The language model does not answer at the moment" in text for text in said) == 1
    assert not any("127.0.0.1" in text or "llm." in text for text in (*said, *outcome.report["messages"]))


# Checks of the same run, besides the expectations of the scenario. The longest runs come first.
EXTRA_CHECKS: dict[str, Callable[[ProgramOutcome], None] | None] = {
    "follow-up": assert_both_who_asked_were_told_one_after_the_other,
    "quiet-room": None,
    "hello": None,
    "model-trouble": assert_an_absent_model_was_told_once_and_without_its_address,
    "second-model": None,
    "watched": None,
    "voice-trouble": assert_a_voice_in_trouble_was_told_in_the_log_and_not_to_people,
    "no-voice": None,
    "look-it-up": None,
    "voice-modes": None,
    "reminder": None,
    "two-calls": None,
    "captions": None,
}


@pytest.mark.parametrize("name", EXTRA_CHECKS)
def test_a_scenario_keeps_its_promises(name: str, tmp_path: Path) -> None:
    """Every expectation of the scenario is met, and nothing fails during the run."""
    outcome = Program.rehearse(tmp_path, name).wait()
    assert_kept(outcome)
    if extra := EXTRA_CHECKS[name]:
        extra(outcome)


def test_a_crowd_on_a_rough_network_loses_nobody(tmp_path: Path) -> None:
    """With 5 % loss, 5 % padding and 5 % reordering, people who talk over each other are heard and answered as on a
    good one.
    """
    worse = ("--loss", "0.05", "--padding", "0.05", "--reorder", "0.05")
    rough = Program.rehearse(tmp_path, "crowd", *worse).wait()
    assert_kept(rough)
    assert_people_who_talked_over_each_other_are_turns_with_several_voices(rough)
    packets = rough.report["packets"]
    assert min(packets["padded"], packets["lost"], packets["concealed"] + packets["recovered"]) > 25


def assert_kept(outcome: ProgramOutcome) -> None:
    """Check that every expectation was met and that the program did not fail."""
    broken = {one["name"]: one["detail"] for one in outcome.report["expectations"] if not one["passed"]}
    assert not broken, outcome.printed
    assert outcome.status == 0
    assert "Traceback" not in outcome.printed
