"""The whole scenarios about participation: the expectations of each file, as other participants heard the bot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.scenarios.program import Outcome

pytestmark = pytest.mark.rehearsal


def assert_people_who_talked_over_each_other_are_turns_with_several_voices(outcome: Outcome) -> None:
    """What overlapped was heard of both, and the one that was for the bot was answered for the one who asked."""
    report = outcome.report
    assert {turn["answers"] for turn in report["bot_turns"]} == {"ask-ladder", "ask-chairs"}
    assert len({one["speaker"] for one in report["utterances"]}) == 4


def assert_both_who_asked_were_told_one_after_the_other(outcome: Outcome) -> None:
    """In one answer, or in two of which the second begins as soon as the first is over."""
    first, *more = outcome.report["bot_turns"]
    assert not first["interrupted"]
    for turn in more:
        assert 0 < turn["at_s"] - first["fell_silent_s"] < 3


def assert_a_voice_in_trouble_was_told_in_the_log_and_not_to_people(outcome: Outcome) -> None:
    """Participants hear an answer, by another voice; the operator finds the reason in the log."""
    report = outcome.report
    assert len(report["bot_turns"]) == 4
    assert all(turn["heard_by_others"] for turn in report["bot_turns"])
    assert report["problems"]


# Scenario -> what is read off the same run besides its own expectations.
EXTRA_CHECKS: dict[str, Callable[[Outcome], None] | None] = {
    "crowd": assert_people_who_talked_over_each_other_are_turns_with_several_voices,
    "model-trouble": None,
    "second-model": None,
    "hush": None,
    "both-ask": assert_both_who_asked_were_told_one_after_the_other,
    "voice-trouble": assert_a_voice_in_trouble_was_told_in_the_log_and_not_to_people,
    "no-voice": None,
    "follow-up": None,
    "look-it-up": None,
    "quiet-room": None,
    "voice-modes": None,
    "ceiling": None,
}


@pytest.mark.parametrize("name", EXTRA_CHECKS)
def test_a_scenario_keeps_its_promises(name: str, tmp_path: Path) -> None:
    """Every expectation of its file, and nothing breaks on the way."""
    outcome = Program.rehearse(tmp_path, name).wait()
    broken = {one["name"]: one["detail"] for one in outcome.report["expectations"] if not one["passed"]}
    assert not broken, outcome.printed
    assert outcome.status == 0
    assert "Traceback" not in outcome.printed
    if extra := EXTRA_CHECKS[name]:
        extra(outcome)
