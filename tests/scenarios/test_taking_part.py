"""Bundled scenarios without speech-to-speech. Each is played completely, and judged by what people heard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scenarios.program import Program, ProgramOutcome

pytestmark = pytest.mark.rehearsal


def assert_people_who_talked_over_each_other_are_turns_with_several_voices(outcome: ProgramOutcome) -> None:
    """Check that both of two overlapping people were heard, and that the question to the bot was answered."""
    report = outcome.report
    assert {turn["answers"] for turn in report["bot_turns"]} == {"ask-ladder", "ask-chairs"}
    assert len({one["speaker"] for one in report["utterances"]}) == 4


def assert_an_interrupted_reply_is_remembered_as_far_as_it_was_heard(outcome: ProgramOutcome) -> None:
    """Check that words broke an answer off, and a listener's "mhm" did not."""
    whole, broken_off = outcome.report["bot_turns"][:2]
    assert len(broken_off["text"]) < len(whole["text"]) / 2
    assert "soup" not in broken_off["heard_by_others"]


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
    "goes-on": None,
    "second-thoughts": None,
    "follow-up": None,
    "interrupted": assert_an_interrupted_reply_is_remembered_as_far_as_it_was_heard,
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

# Seconds that recogniser, model and voice take on a processor that is faster than any, and on a slow one.
SPEEDS = {"fast": ("0", "0", "0"), "slow": ("1", "1.5", "0.5")}
# Where it matters when a text is known or an answer begins, because somebody speaks just then, or a model may find that
# it has nothing to say. In the other scenarios people speak when they have been answered; `quiet-room` and `reminder`
# set their times themselves; slow and broken servers are what `look-it-up`, `watched`, `no-voice` and those with
# `trouble` and `model` in their names are about; and speech-to-speech has none of the three.
AT_ANY_SPEED = [
    *((name, speed) for name in ("goes-on", "second-thoughts", "follow-up") for speed in SPEEDS),
    ("interrupted", "slow"),
    ("crowd", "slow"),
    ("voice-modes", "slow"),
]


@pytest.mark.parametrize(("name", "speed"), AT_ANY_SPEED)
def test_a_scenario_keeps_its_promises_at_any_speed(name: str, speed: str, tmp_path: Path) -> None:
    """Every expectation is met with stand-ins for recogniser, model and voice that take so long."""
    assert_kept(Program.rehearse(tmp_path, name, "--stand-ins", *SPEEDS[speed]).wait())


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
