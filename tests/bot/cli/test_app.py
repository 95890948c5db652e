"""The command line as a whole: help, mistakes, and what a failure looks like."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from bot.cli import app
from bot.cli.app import run_command_line
from bot.cli.failures import report_failure
from bot.errors import SetupError
from config.errors import ConfigError
from rehearsal.errors import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = ("run", "rehearse", "replay", "tail", "explain", "doctor", "memory", "models")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory: no settings, no models, no token."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCORD_TOKEN", raising=False)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_command(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A newcomer sees what there is and where to begin."""
    assert run_command_line([flag]) == 0
    told = capsys.readouterr().out
    assert all(f"\n  {command} " in told for command in COMMANDS)
    assert "roomtone doctor" in told


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With both spellings of the question."""
    for flag in ("-h", "--help"):
        assert run_command_line([command, flag]) == 0
        assert f"roomtone {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["dance"],
        ["--loud"],
        ["replay"],
        ["rehearse", "--no-bot"],
        ["rehearse", "--port", "8000"],
        ["rehearse", "--limit", "3"],
        ["rehearse", "--serve", "--report", "report.json"],
        ["rehearse", "three-hours", "--picture", "nowhere/evening.svg"],
        ["rehearse", "--model-file", "small.gguf"],
        ["rehearse", "--set", "nonsense"],
        ["rehearse", "--port", "70000", "--serve"],
    ],
)
def test_misuse_ends_with_status_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong word is told with how to ask for help, and without a traceback."""
    assert run_command_line(arguments) == 2
    told = capsys.readouterr().err
    assert "Error" in told
    assert "-h" in told
    assert "Traceback" not in told


def test_settings_that_cannot_be_used_are_all_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every mistake at once, exit status 2."""
    (tmp_path / "roomtone.toml").write_text('[compaction]\nmode = "sometimes"\n[room]\nmood = 3\n')
    assert run_command_line(["run"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("The settings cannot be used:\n")
    assert "compaction.mode" in told
    assert "mood" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rehearse", "nope"], "the bundled scenarios are"),
        (["rehearse", "hello", "--set", "asr.model_dir=/no/such/place"], "/no/such/place"),
        (["rehearse", "--speech", "/no/such/place"], "/no/such/place"),
    ],
)
def test_a_rehearsal_that_cannot_begin_says_why(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scenario, model directory, recordings: a plain sentence each, exit status 1."""
    assert run_command_line(arguments) == 1
    captured = capsys.readouterr()
    assert told in captured.err
    assert "Traceback" not in captured.err


def test_a_corrupt_scenario_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every mistake with its place."""
    (tmp_path / "mine.toml").write_text('title = "x"\n[[steps]]\nwho = "nobody"\ndance = true\n')
    assert run_command_line(["rehearse", "mine.toml"]) == 1
    assert "mine.toml" in capsys.readouterr().err


def test_a_busy_port_is_a_plain_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody else listens there already."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run_command_line(["rehearse", "--serve", "--no-bot", "--port", str(port)]) == 1
    assert "cannot listen on 127.0.0.1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (SetupError("The voice is gone. Pull it."), 1, "The voice is gone. Pull it.\n"),
        (ScenarioError(("one.", "two.")), 1, "one.\ntwo.\n"),
        (ConfigError(("a.b is wrong.",)), 2, "The settings cannot be used:\n  - a.b is wrong.\n"),
        (ExceptionGroup("tasks", [SetupError("First.")]), 1, "First.\n"),
        (
            PermissionError(13, "Permission denied", "/data"),
            1,
            "The system reported an error: Permission denied (/data).\n",
        ),
        (
            ImportError("libopus.so.0: file too short"),
            1,
            (
                "A library that Roomtone needs cannot be loaded: libopus.so.0: file too short. Install it again: "
                "`make clean setup`.\n"
            ),
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_failures_are_sentences(
    error: BaseException, status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line a sentence on stderr, and the status that shells expect."""
    assert report_failure(error) == status
    assert capsys.readouterr().err == told


def test_a_mistake_of_ours_is_told_without_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unexpected error may contain what people said, so only its type is shown."""

    def breaks() -> object:
        raise ValueError("what Ada said")

    monkeypatch.setattr(app, "_assemble", breaks)
    assert run_command_line(["run"]) == 1
    told = capsys.readouterr().err
    assert "ValueError" in told
    assert "Ada" not in told
