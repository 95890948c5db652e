"""`roomtone tail` shows selected events of a log, complete or still growing, to people and programs."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import structlog
import typer
from typer.testing import CliRunner

from bot.cli.log_view.tail import LogTail, command, patterns_of, printer
from bot.errors import SetupError
from bot.logs.log_file import log_path
from bot.logs.output import configured_logging
from bot.store.database import open_database
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from compaction.model import Seq, Turn, TurnKind, TurnPart
from tests.fakes.clock import FakeClock

app = typer.Typer()
app.command()(command)
log = structlog.get_logger()


def write(path: Path, *events: dict[str, Any]) -> None:
    """Append events to a log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(
            json.dumps({"timestamp": "2026-11-20T04:11:05Z", "level": "info", **each}) + "\n" for each in events
        )


def tail(
    path: Path, *, session: str | None = None, events: list[str] | None = None, last: int | None = None
) -> tuple[str, str]:
    """Return the shown lines of a log and the notices."""
    out, notices = io.StringIO(), io.StringIO()
    show, patterns = printer(as_json=True, names={}), patterns_of(events or [])
    with redirect_stdout(out), redirect_stderr(notices):
        LogTail(path, show, session=session, patterns=patterns).run(follow=False, last=last)
    return out.getvalue(), notices.getvalue()


def names(shown: str) -> list[str]:
    """Return the event names of shown lines."""
    return [json.loads(line)["event"] for line in shown.splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a log that does not exist yet."""
    return log_path(tmp_path / "data")


def test_what_the_bot_logs_can_be_read(tmp_path: Path) -> None:
    """Events logged by the bot are shown in order, also after the log was rotated."""
    with configured_logging(data_dir=tmp_path, console=io.StringIO(), max_file_bytes=500):
        for number in range(20):
            log.info("fact_told", number=number)
    shown, said = tail(log_path(tmp_path))
    assert [json.loads(line)["number"] for line in shown.splitlines()] == list(range(20))
    assert said == ""


def test_sessions_and_events_are_chosen(path: Path) -> None:
    """Events are selected by a session id or its beginning, by event names and patterns, and by `compaction`."""
    write(
        path,
        {"event": "turn_recorded", "session_id": "20261120-a"},
        {"event": "turn_recorded", "session_id": "20261121-b"},
        {"event": "voice_context_compaction_started", "session_id": "20261120-a"},
        {"event": "process_started"},
    )
    assert len(tail(path)[0].splitlines()) == 4
    assert names(tail(path, session="20261120-a")[0]) == ["turn_recorded", "voice_context_compaction_started"]
    assert names(tail(path, session="20261121")[0]) == ["turn_recorded"]
    assert names(tail(path, events=["turn_*,process_started"])[0]) == ["turn_recorded"] * 2 + ["process_started"]
    assert names(tail(path, events=["compaction"])[0]) == ["voice_context_compaction_started"]
    assert names(tail(path, last=1)[0]) == ["process_started"]
    assert names(tail(path, last=2, events=["turn_recorded"])[0]) == ["turn_recorded"] * 2


def test_another_file_is_no_log(tmp_path: Path) -> None:
    """A text without a single event is refused, and an empty log is not: a full disk leaves one."""
    other = tmp_path / "notes.txt"
    other.write_text("Milk\nBread\n")
    with pytest.raises(SetupError, match="2 other lines"):
        tail(other)
    other.write_text("")
    assert tail(other) == ("", f"{other} has no event yet.\n")


def test_json_is_the_log_as_it_is(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With JSON output, each event's line is printed unchanged and incomplete lines are removed."""
    write(path, {"event": "one", "text": "ü \u001b"})
    with path.open("ab") as file:
        file.write(b'{"timest')
    write(path, {"event": "two"})
    LogTail(path, printer(as_json=True, names={})).run(follow=False, last=None)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["one", "two"]
    assert lines[0] == path.read_text().splitlines()[0]


@pytest.mark.usefixtures("in_tmp_path")
def test_the_command_reads_the_configured_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is found through the settings, several names may follow one --event, and a pipe gets no colours."""
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", "here")
    write(
        log_path(tmp_path / "here"),
        {"event": "one", "session_id": "s"},
        {"event": "two", "session_id": "s"},
        {"event": "three"},
    )
    result = CliRunner().invoke(app, ["--session", "s", "--json", "--event", "one,two", "--event", "three"])
    assert result.exit_code == 0
    assert names(result.stdout) == ["one", "two"]
    result = CliRunner().invoke(app, ["--event", "three"])
    assert result.stdout == "04:11 three\n"
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", "elsewhere")
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    assert "There is no log yet" in result.stderr
    # A missing file that was named explicitly is an error.
    result = CliRunner().invoke(app, ["--file", str(tmp_path / "absent.jsonl")])
    assert isinstance(result.exception, SetupError)
    assert "There is no log" in str(result.exception)
    result = CliRunner().invoke(app, ["--file", str(tmp_path)])
    assert isinstance(result.exception, SetupError)
    assert str(result.exception).startswith(f"{tmp_path} is a folder.")


async def test_people_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has ids; the short line has the name of whom the memory knows."""
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path))
    clock = FakeClock()
    async with open_database(tmp_path / "roomtone.db") as database:
        opened = await Sessions(database, clock).open(guild_id=1, channel_id=2, resume_within_s=0.0)
        turn = Turn(Seq(0), TurnKind.SPEECH, 1.0, 2.0, (TurnPart("7", "Ada", "Hello."),))
        await SqlTurnStore(database, clock).append_turn(opened.session.id, turn)
    spoke = {"kind": "speech", "reason": "not_addressed", "duration_s": 0.5}
    write(log_path(tmp_path), *({"event": "turn_recorded", "speaker_id": who, **spoke} for who in (7, 8)))
    result = await asyncio.to_thread(CliRunner().invoke, app, [])
    lines = [line.partition(" ")[2] for line in result.stdout.splitlines()]
    assert lines == ["Ada spoke, not addressed, 0.5 s", "8 spoke, not addressed, 0.5 s"]
