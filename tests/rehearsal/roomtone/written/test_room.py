"""A written scenario runs in the real room, and its expectations are compared with what happened."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from bot.folder_lock import is_locked
from rehearsal.report.report import RehearsalReport
from rehearsal.report.terminal import TerminalReport
from rehearsal.roomtone.evenings.virtual_time import run_virtually
from rehearsal.roomtone.written.room import WrittenRoom, play_written
from rehearsal.roomtone.written.services import written_settings
from rehearsal.script.scenario import PersonSpec, Scenario

BOAT = {"who": "ada", "say": "The boat in the harbour is green.", "answered": False}
ASKED = "Roomtone, what colour is the boat in the harbour?"


def written(*steps: dict[str, Any], **more: Any) -> Scenario:
    """Return a scenario of Ada and Bo, with Chloe, who comes later."""
    people = tuple(
        PersonSpec(key=key, name=key.capitalize(), id=number, present=key != "chloe")
        for number, key in enumerate(("ada", "bo", "chloe"), 1)
    )
    return Scenario.model_validate({"title": "A short one", "written": True, "people": people, "steps": steps, **more})


EVENING = written(
    BOAT,
    {"who": "bo", "say": "I had soup for lunch.", "answered": False},
    {"who": "ada", "say": "And I had bread with it today.", "overlap_s": 1.0, "answered": False},
    {"who": "chloe", "join": True, "gap_s": 300.0},
    {"id": "asked", "who": "chloe", "say": ASKED, "answered": True},
    {"who": "chloe", "leave": True},
    expect=(
        {"kind": "every_utterance_heard_once"},
        {"kind": "timeline_complete"},
        {"kind": "prompts_complete", "max_tokens": 10_000},
        {"kind": "answer", "to": "asked", "heard": False, "all_of": ["green"]},
        {"kind": "interrupted", "to": "asked", "value": False},
        {"kind": "max_wer", "value": 0.0},
    ),
)


def play(scenario: Scenario, shown: io.StringIO | None = None) -> RehearsalReport:
    """Play a scenario; `shown` gets the terminal output."""
    program = TerminalReport(Console(file=shown or io.StringIO(), width=100))
    report = run_virtually(play_written(scenario, written_settings(scenario), program))
    program.show(report)
    return report


def broken(report: RehearsalReport) -> list[str]:
    """Return the names of the expectations that were not met."""
    return [one.name for one in report.expectations if not one.passed]


def test_a_short_evening_keeps_its_promises() -> None:
    """An evening of several minutes, with people who join, talk over each other, ask and leave, is played
    in a moment.
    """
    shown = io.StringIO()
    report = play(EVENING, shown)
    assert broken(report) == []
    assert report.passed
    assert report.clock_s is not None
    assert report.clock_s > 300
    assert [turn.answers for turn in report.bot_turns] == ["asked"]
    assert [row.reference == row.transcript for row in report.utterances] == [True] * 4
    printed = shown.getvalue()
    assert "Ada, Bo, Chloe in The Rehearsal" in printed
    assert "in writing, on a virtual clock" in printed
    assert "Chloe joins" in printed
    assert "The boat in the harbour is green." in printed
    assert "PASSED" in printed
    # There is no sound, so no packets are reported.
    assert "Packets" not in printed


def test_an_answer_that_is_broken_off_is_heard_up_to_there() -> None:
    """Somebody speaks over its second sentence, and that is the interruption that the scenario expects."""
    scenario = written(
        BOAT,
        {"id": "asked", "who": "bo", "say": ASKED, "answered": True},
        {"id": "stop", "who": "ada", "say": "Wait, the doorbell rings and I must go.", "after": "voice", "gap_s": 4.0},
        expect=({"kind": "interrupted", "to": "asked"},),
    )
    assert broken(play(scenario)) == []


def test_an_answer_that_does_not_come_is_waited_for_and_told() -> None:
    """A missing answer is waited for until a time limit, then reported, and the evening goes on."""
    unasked = {"id": "fence", "who": "bo", "say": "I painted the fence.", "answered": True}
    report = play(written(BOAT, unasked, {"who": "bo", "say": "It is done."}))
    assert broken(report) == ["wait", "answered fence"]
    assert len(report.utterances) == 3


def test_a_kept_evening_has_its_folder_to_itself(tmp_path: Path) -> None:
    """A second one, or a bot, would write into the same memory."""

    async def keep() -> None:
        async with WrittenRoom(EVENING, written_settings(EVENING), data_dir=tmp_path) as room:
            await room.start(lambda _: None)
            assert is_locked(tmp_path)

    run_virtually(keep())
    assert not is_locked(tmp_path)
