"""`roomtone memory prune`: what it says before, its question, and what it deletes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from bot.cli.failures import FAILED, INTERRUPTED
from bot.folder_lock import folder_lock
from bot.server_settings import ServerSettings
from bot.store.servers import SqlServerSettings
from tests.bot.cli.memory.stored_evening import Answers, at_evening, told
from tests.bot.evening import GUILD, Evening


def test_it_says_what_it_goes_by_and_asks_first(
    data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With settings that the bot does not have it would delete what the bot keeps, so memory and time are said before.
    Without a yes nothing is deleted.
    """

    async def end(evening: Evening) -> None:
        await evening.timeline.end()

    at_evening(data_dir, end)
    for answer, status, told_then in (("n\n", INTERRUPTED, "Nothing was changed."), ("", FAILED, "Add --yes")):
        monkeypatch.setattr("sys.stdin", Answers(answer))
        out = told(capsys, "memory", "prune", status=status)
        assert out.startswith(f"Memory: {data_dir / 'roomtone.db'}\n")
        assert f"the log lines in {data_dir / 'logs'}, are kept for 30 days (the default)." in out
        assert "for 30 days" in out
        assert "Go on?" in out
        assert told_then in out
    assert "evening" in told(capsys, "memory", "list")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    monkeypatch.setenv("ROOMTONE_TIERS__RETENTION_DAYS", "1")
    out = told(capsys, "memory", "prune")
    assert "are kept for 1 day (tiers.retention_days)." in out
    assert "Deleted 1 session." in out
    assert "No session" in told(capsys, "memory", "list", status=1)


@pytest.mark.usefixtures("data_dir")
def test_with_yes_it_does_not_ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """For a timer, which has no stdin. What is kept for ever stays."""
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    monkeypatch.setenv("ROOMTONE_TIERS__RETENTION_DAYS", "0")
    out = told(capsys, "memory", "prune", "--yes")
    assert "are kept for ever (tiers.retention_days)." in out
    assert out.endswith("\nNothing was old enough.\n")
    assert "Go on?" not in out


@pytest.mark.parametrize("kept_for", ["0", "3650"])
def test_a_server_keeps_its_sessions_for_the_shorter_time_that_it_chose(
    data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kept_for: str
) -> None:
    """As the bot does it once a day: what the server's managers chose holds where it is shorter, and is told before."""
    monkeypatch.setenv("ROOMTONE_TIERS__RETENTION_DAYS", kept_for)

    async def choose(evening: Evening) -> None:
        servers = SqlServerSettings(evening.database, evening.clock)
        await servers.put(GUILD, ServerSettings(retention_days=2), by=None)
        await servers.put(GUILD + 1, ServerSettings(retention_days=3_651), by=None)

    assert told(capsys, "memory", "prune", "--yes").endswith("\nNothing was old enough.\n")
    at_evening(data_dir, choose)
    out = told(capsys, "memory", "prune", "--yes")
    assert f"Servers have chosen shorter times for their sessions: 2 days on {GUILD}" in out
    assert "Deleted 1 session." in out
    assert "No session is stored yet" in told(capsys, "memory", "list", status=1)


def test_the_open_sessions_of_a_running_bot_stay(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody may have spoken in a room for long, but its bot goes on with its session. Without a bot, it is over."""
    with folder_lock(data_dir):
        assert "Deleted 1 session." not in told(capsys, "memory", "prune", "--yes")
    assert "evening" in told(capsys, "memory", "list")
    assert "Deleted 1 session." in told(capsys, "memory", "prune", "--yes")
