"""The command line as a whole: help, usage errors, and how failures are reported."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from bot.cli import app
from bot.cli.app import run_command_line
from bot.cli.failures import INSTALL_PARTS, report_failure
from bot.errors import SetupError
from config import ConfigError
from rehearsal.script.scenario_file import ScenarioError

COMMANDS = (
    "run",
    "rehearse",
    "replay",
    "tail",
    "explain",
    "doctor",
    "report",
    "settings",
    "invite",
    "memory",
    "models",
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory without settings, models and a token."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCORD_TOKEN", raising=False)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command has a help text for -h and --help."""
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
        ["rehearse", "--serve", "--report", "report.json"],
        ["rehearse", "three-hours", "--picture", "nowhere/evening.svg"],
        ["rehearse", "--set", "nonsense"],
        ["rehearse", "--port", "70000", "--serve"],
    ],
)
def test_misuse_ends_with_status_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage ends with exit status 2 and a hint to the help, without a traceback."""
    assert run_command_line(arguments) == 2
    told = capsys.readouterr().err
    assert "Error" in told
    assert "-h" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tail", "--last", "many"], "must be a valid integer."),
        (["rehearse", "--loss", "2"], "must be less than or equal to 1."),
        (["replay", "talk.jsonl", "--mode", "x"], "'x' is not one of 'summary', 'rolling', 'off'."),
        (["rehearse", "hello", "--picture", "evening.png"], "evening.svg"),
        (["replay", "talk.jsonl", "--report", "nowhere/report.json"], "there is no folder nowhere"),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence names the option and has none of the library's words. Outputs are checked before the work begins."""
    assert run_command_line(arguments) == 2
    error = capsys.readouterr().err
    assert arguments[-2] in error
    assert told in error
    assert not any(word in error for word in ("Input should", "unable to parse", "Value error", "Traceback"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["restore", "nowhere.db"], "nowhere.db is not a file. Name a file that `roomtone backup` wrote."),
        (["restore", "."], ". is not a file. Name a file that `roomtone backup` wrote."),
        (["invite"], "DISCORD_TOKEN is not set"),
        (["run", "--shards", "0/2"], "--shards is for a bot on Discord, and DISCORD_TOKEN is not set."),
    ],
)
def test_a_request_that_cannot_be_met_is_told_at_once(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a token `run` plays the rehearsal, but not if the options ask for something else."""
    assert run_command_line(arguments) == 1
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "line",
    [
        ["--config", "PATH", "run"],
        ["run", "--config", "PATH"],
        ["run", "--config=PATH"],
        ["memory", "--config", "PATH", "list"],
        ["memory", "list", "--config", "PATH"],
    ],
    ids=" ".join,
)
def test_the_settings_are_named_before_or_after_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: list[str]
) -> None:
    """`--config` works anywhere on the line."""
    monkeypatch.setenv("ROOMTONE_CONFIG", "")
    assert run_command_line([word.replace("PATH", "/nowhere/at/all") for word in line]) == 2
    assert "/nowhere/at/all does not exist. Check the path" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rehearse", "nope"], "the bundled scenarios are"),
        (["rehearse", "hello", "--set", "asr.model=/no/such/place"], "/no/such/place"),
    ],
)
def test_a_rehearsal_that_cannot_begin_says_why(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown scenario or model directory ends with exit status 1 and a plain sentence."""
    assert run_command_line(arguments) == 1
    captured = capsys.readouterr()
    assert told in captured.err
    assert "Traceback" not in captured.err


def test_a_busy_port_is_a_plain_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """If the port is in use, a plain sentence says so."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run_command_line(["rehearse", "--serve", "--no-bot", "--port", str(port)]) == 1
    told = capsys.readouterr().err
    assert "cannot listen on 127.0.0.1" in told
    assert "choose another one" in told


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
        (
            ModuleNotFoundError("No module named 'jiwer'", name="jiwer"),
            1,
            f"The part 'rehearsal' of Roomtone is not installed. {INSTALL_PARTS}\n",
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_failures_are_sentences(
    error: BaseException, status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A known failure is printed on stderr as plain sentences, with the exit status that shells expect."""
    assert report_failure(error) == status
    assert capsys.readouterr().err == told


def test_a_mistake_of_ours_is_told_without_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the type of an unexpected error is shown, because its message may contain what people said."""

    def breaks(_names: object) -> object:
        raise ValueError("what Ada said")

    monkeypatch.setattr(app, "assemble", breaks)
    assert run_command_line(["run"]) == 1
    told = capsys.readouterr().err
    assert "ValueError" in told
    assert "Ada" not in told
