"""A written evening runs in the real room, and its expectations are compared with what happened."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from bot.cli.rehearsal.written import player as playing
from bot.cli.rehearsal.written.player import open_player, play_written
from bot.cli.rehearsal.written.services import EVENING_SETTINGS
from bot.folder_lock import is_locked
from config.load import load
from rehearsal.report.terminal import TerminalReport
from rehearsal.script.written_evening import (
    EveningEvent,
    EveningLine,
    PresenceEvent,
    SilenceEvent,
    SpeechEvent,
    WrittenEvening,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rehearsal.report.report import RehearsalReport

BOAT = SpeechEvent(who="ada", say="The boat in the harbour is green.")
ASKED = "Roomtone, what colour is the boat in the harbour?"


def written(title: str, happenings: tuple[EveningEvent, ...]) -> WrittenEvening:
    """Return an evening with one event on each line of its file."""
    return WrittenEvening(title, happenings, tuple(range(1, len(happenings) + 1)))


EVENING = written(
    "A short one",
    (
        BOAT,
        SpeechEvent(
            who="bo", say="I had soup for lunch.", over=EveningLine(who="ada", say="And I had bread with it today.")
        ),
        SilenceEvent(quiet_s=300),
        PresenceEvent(who="chloe", move="join"),
        SpeechEvent(who="chloe", say=ASKED, answer=("green",)),
        PresenceEvent(who="chloe", move="leave"),
    ),
)


async def play(evening: WrittenEvening, shown: io.StringIO | None = None) -> RehearsalReport:
    """Play an evening; `shown` gets the terminal output."""
    program = TerminalReport(Console(file=shown or io.StringIO(), width=100))
    report = await play_written(evening, load(overrides=EVENING_SETTINGS), program)
    program.show(report)
    return report


def broken(report: RehearsalReport) -> list[str]:
    """Return the names of the expectations that were not met."""
    return [one.name for one in report.expectations if not one.passed]


@pytest.mark.asyncio
async def test_a_short_evening_keeps_its_promises() -> None:
    """An evening of several minutes, with people who join, talk over each other, ask and leave, is played
    in a moment.
    """
    shown = io.StringIO()
    report = await play(EVENING, shown)
    assert broken(report) == []
    assert report.passed
    assert report.clock_s is not None
    assert report.clock_s > 300
    assert [turn.answers for turn in report.bot_turns] == ["line 5"]
    assert [row.reference == row.transcript for row in report.utterances] == [True] * 4
    printed = shown.getvalue()
    assert "Ada, Bo, Chloe; 3 things to say; in writing" in printed
    assert "Chloe comes in" in printed
    assert "The boat in the harbour is green." in printed
    assert "PASSED" in printed
    # A written evening has no sound, so neither packets nor unheard replies are reported.
    assert "nobody heard it" not in printed
    assert "Packets" not in printed


@pytest.mark.asyncio
async def test_an_answer_without_what_was_asked_for_is_a_broken_promise() -> None:
    """An answer without the expected word fails, and the report has the question and the answer."""
    report = await play(written("Wrong", (BOAT, SpeechEvent(who="bo", say=ASKED, answer=("purple",)))))
    assert broken(report) == ["answered"]
    (told,) = [one.detail for one in report.expectations if not one.passed]
    assert ASKED in told
    assert "green" in told


@pytest.mark.asyncio
async def test_an_answer_that_does_not_come_is_waited_for_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing answer is waited for until a time limit, then reported, and the evening goes on."""
    monkeypatch.setattr(playing, "_PATIENCE_S", 6.0)
    unasked = SpeechEvent(who="bo", say="I painted the fence.", answer=("green",))
    report = await play(written("In vain", (BOAT, unasked, SpeechEvent(who="bo", say="It is done."))))
    assert broken(report) == ["wait", "answered"]
    assert len(report.utterances) == 3


@pytest.mark.asyncio
async def test_a_kept_evening_has_its_folder_to_itself(tmp_path: Path) -> None:
    """A second one, or a bot, would write into the same memory."""
    settings = load(overrides=EVENING_SETTINGS)
    async with open_player(EVENING, settings, data_dir=tmp_path):
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
