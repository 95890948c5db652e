"""The scenarios about taking part, whole: what each promises in its own file, heard by the other participants.

They play in real time and mostly wait, so a few are played at once; more would make a machine of two cores late.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias

import pytest

from tests.scenarios.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.scenarios.program import Outcome

pytestmark = pytest.mark.rehearsal

AT_ONCE = 3
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

Played: TypeAlias = "dict[str, Future[Outcome]]"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Play all of them, a few at a time."""
    folder: Path = tmp_path_factory.mktemp("taking-part")
    programs: list[Program] = []

    def play(name: str) -> Outcome:
        program = Program.rehearse(folder / name, name)
        programs.append(program)
        return program.wait()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(play, name) for name in NAMES}
        pool.shutdown(wait=False, cancel_futures=True)
        for program in programs:
            program.kill()


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_keeps_its_promises(played: Played, name: str) -> None:
    """Every expectation of its file, and nothing breaks on the way."""
    outcome = played[name].result()
    broken = {one["name"]: one["detail"] for one in outcome.report["expectations"] if not one["passed"]}
    assert not broken, outcome.printed
    assert outcome.status == 0
    assert "Traceback" not in outcome.printed


def test_people_who_talk_over_each_other_are_turns_with_several_voices(played: Played) -> None:
    """What overlapped was heard of both, and the one that was for the bot was answered for the one who asked."""
    report = played["crowd"].result().report
    assert {turn["answers"] for turn in report["bot_turns"]} == {"ask-ladder", "ask-chairs"}
    assert len({one["speaker"] for one in report["utterances"]}) == 4


def test_both_who_asked_are_told_one_after_the_other(played: Played) -> None:
    """In one answer, or in two of which the second begins as soon as the first is over."""
    first, *more = played["both-ask"].result().report["bot_turns"]
    assert not first["interrupted"]
    for turn in more:
        assert 0 < turn["at_s"] - first["fell_silent_s"] < 3


def test_a_voice_in_trouble_is_told_in_the_log_and_not_to_people(played: Played) -> None:
    """They hear an answer, by another voice; whoever runs the bot reads why."""
    report = played["voice-trouble"].result().report
    assert len(report["bot_turns"]) == 4
    assert all(turn["heard_by_others"] for turn in report["bot_turns"])
    assert report["problems"]
