"""The scenarios about taking part, whole: what each promises in its own file, heard by the other participants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import Program

if TYPE_CHECKING:
    from tests.scenarios.program import Outcome

pytestmark = pytest.mark.rehearsal

NAMES = (
    "crowd",
    "model-trouble",
    "second-model",
    "hush",
    "both-ask",
    "voice-trouble",
    "no-voice",
    "follow-up",
    "look-it-up",
    "quiet-room",
    "voice-modes",
    "ceiling",
)


@pytest.fixture(scope="module")
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Play a scenario once for all tests about it."""
    name = str(request.param)
    return Program.rehearse(tmp_path_factory.mktemp(name), name).wait()


def playing(*names: str) -> pytest.MarkDecorator:
    """Hand the test the outcome of each of these scenarios. All tests about one run in the worker that played it."""
    marked = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]
    return pytest.mark.parametrize("outcome", marked, indirect=True)


@playing(*NAMES)
def test_a_scenario_keeps_its_promises(outcome: Outcome) -> None:
    """Every expectation of its file, and nothing breaks on the way."""
    broken = {one["name"]: one["detail"] for one in outcome.report["expectations"] if not one["passed"]}
    assert not broken, outcome.printed
    assert outcome.status == 0
    assert "Traceback" not in outcome.printed


@playing("crowd")
def test_people_who_talk_over_each_other_are_turns_with_several_voices(outcome: Outcome) -> None:
    """What overlapped was heard of both, and the one that was for the bot was answered for the one who asked."""
    report = outcome.report
    assert {turn["answers"] for turn in report["bot_turns"]} == {"ask-ladder", "ask-chairs"}
    assert len({one["speaker"] for one in report["utterances"]}) == 4


@playing("both-ask")
def test_both_who_asked_are_told_one_after_the_other(outcome: Outcome) -> None:
    """In one answer, or in two of which the second begins as soon as the first is over."""
    first, *more = outcome.report["bot_turns"]
    assert not first["interrupted"]
    for turn in more:
        assert 0 < turn["at_s"] - first["fell_silent_s"] < 3


@playing("voice-trouble")
def test_a_voice_in_trouble_is_told_in_the_log_and_not_to_people(outcome: Outcome) -> None:
    """They hear an answer, by another voice; whoever runs the bot reads why."""
    report = outcome.report
    assert len(report["bot_turns"]) == 4
    assert all(turn["heard_by_others"] for turn in report["bot_turns"])
    assert report["problems"]
