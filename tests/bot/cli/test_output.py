"""What people see is folded at the width of their terminal, and no line ends in blanks."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pytest
import structlog
import typer

from bot.cli.environment import logging_from_settings
from bot.cli.output import confirm, dashboard_line, open_console, print_indented, print_json, say, svg_picture
from bot.errors import BotError, SetupError
from bot.wiring.pages import LINK_FILE, write_link
from config.load import load
from tests.bot.cli.terminal import Terminal

ROOT = Path(__file__).parents[3]


# Sets the title, clears the screen, fills the clipboard, colours (as one character), and turns what follows round.
HOSTILE = "Eve\x1b]0;a\x07\x1b[2J\x1b]52;c;cm0=\x07\x9b31m\u202e\r!"


def test_a_terminal_obeys_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Names, speech and screens reach the operator's terminal as text: whatever is in them, it only shows it."""
    out = io.StringIO()
    console = open_console(file=out, width=60)
    print_indented(console, f"{HOSTILE}: hi", by=4)
    console.print(HOSTILE, markup=False)
    say(f"Roomtone is on Discord, in {HOSTILE}.\n\tNext.")
    shown = capsys.readouterr().out
    assert [line.strip() for line in out.getvalue().splitlines()] == [
        "Eve]0;a[2J]52;c;cm0=31m!: hi",
        "Eve]0;a[2J]52;c;cm0=31m!",
    ]
    assert shown == "Roomtone is on Discord, in Eve]0;a[2J]52;c;cm0=31m!.\n\tNext.\n"


def test_sentences_are_folded_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipe a sentence stays on one line, so that it can be searched; COLUMNS asks for another width."""
    say("word " * 30)
    assert len(capsys.readouterr().out.splitlines()) == 1
    monkeypatch.setenv("COLUMNS", "50")
    say("word " * 30)
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("way_out", [os.pipe, os.openpty], ids=["pipe", "terminal"])
def test_nobody_has_to_read_on(way_out: Callable[[], tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has closed the other end of the pipe, or the terminal, lets the work go on: a bot still has to store."""
    theirs, ours = way_out()
    os.close(theirs)
    with os.fdopen(ours, "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        say("Stopping.")
        say("Stopped.")


@pytest.mark.slow
def test_a_terminal_needs_not_know_every_letter(tmp_path: Path) -> None:
    """A command shows the others, and does not end at the first that an 8-bit terminal lacks."""
    log = tmp_path / "a.jsonl"
    log.write_text(json.dumps({"timestamp": "2026-11-20T04:11:05Z", "event": "joined", "reason": "Küche – 茶"}))
    shown = subprocess.run(
        [sys.executable, "-m", "bot", "tail", "--file", str(log)],
        env={**os.environ, "PYTHONIOENCODING": "iso8859-9"},
        capture_output=True,
        check=True,
    )
    assert "joined: Küche \\u2013 \\u8336" in shown.stdout.decode("iso8859-9")


def test_a_picture_asks_no_server_for_its_fonts() -> None:
    """Whoever opens a picture of a conversation tells nobody about it."""
    console = open_console(file=io.StringIO(), width=60, record=True)
    console.print("The evening begins.")
    picture = svg_picture(console, title="roomtone rehearse")
    assert "evening" in picture
    assert "url(http" not in picture
    assert "font-family" in picture


def test_json_holds_nothing_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    """The values stay exact: programs read them."""
    value = [{"said": f"{HOSTILE}\n\u2066Grüße\x7f"}]
    print_json(value)
    printed = capsys.readouterr().out
    assert json.loads(printed) == value
    assert "Grüße" in printed
    assert not set(printed) & set("\x1b\x07\x9b\u202e\u2066\x7f\r")


@pytest.mark.parametrize("source", [Terminal("y\n"), io.StringIO("yes\n")])
def test_with_a_yes_it_goes_on(source: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed, or from a pipe."""
    monkeypatch.setattr("sys.stdin", source)
    confirm("Go on?", yes=False)


def test_with_a_no_nothing_is_changed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It says so. An empty line is a no."""
    for answer in ("n\n", "\n"):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        with pytest.raises(typer.Abort):
            confirm("Go on?", yes=False)
        assert capsys.readouterr().out.endswith("Nothing was changed.\n")


def test_where_nobody_can_answer_the_option_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A timer has no terminal."""
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(SetupError, match="--yes"):
        confirm("Go on?", yes=False)
    assert "Go on?" in capsys.readouterr().out


LINK = "http://127.0.0.1:8095/login#secret"


@pytest.mark.parametrize("terminal", [True, False])
def test_the_link_is_printed_on_a_terminal_alone(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service's output is kept where others may read it, so that has the file and the command that shows it."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    line = dashboard_line(LINK, Path("my data"))
    if terminal:
        assert line == f"Dashboard: {LINK}"
    else:
        assert "secret" not in line
        assert line.endswith(f"To see it: cat '{Path.cwd()}/my data/dashboard-link'")


def test_the_file_that_is_named_has_the_link(tmp_path: Path) -> None:
    """For the bot's user alone."""
    write_link(tmp_path, LINK)
    assert f"in {tmp_path / LINK_FILE}, which only" in dashboard_line(LINK, tmp_path)
    assert (tmp_path / LINK_FILE).read_text("utf-8") == f"{LINK}\n"
    assert (tmp_path / LINK_FILE).stat().st_mode & 0o077 == 0


KEY = "correct-horse-battery"


def test_a_key_is_written_nowhere(tmp_path: Path) -> None:
    """A secret is redacted in the log file and on the terminal, also in the middle of a sentence."""
    settings = load(
        overrides={"llm.api_key": KEY, "storage.data_dir": str(tmp_path)},
        directory=tmp_path,
        environ={},
    )
    terminal = io.StringIO()
    with logging_from_settings(settings, console=terminal) as logs:
        structlog.get_logger().warning("endpoint_failed", error=BotError(f"400: {KEY} may not use m"))
    written = logs.path.read_text("utf-8")
    assert "[redacted] may not use m" in written
    assert "[redacted] may not use m" in terminal.getvalue()
    assert KEY not in written + terminal.getvalue()


def test_a_setting_bounds_the_log(tmp_path: Path) -> None:
    """All its files together: the one that is written, and those that were rotated."""
    overrides = {"storage.log_mb": 1, "storage.data_dir": str(tmp_path)}
    fields = {f"field_{each}": each for each in range(300)}
    settings = load(overrides=overrides, directory=tmp_path, environ={})
    with logging_from_settings(settings, console=io.StringIO()) as logs:
        for number in range(300):
            structlog.get_logger().info("fact_told", number=number, **fields)
    sizes = [file.stat().st_size for file in logs.path.parent.iterdir()]
    assert 500_000 < sum(sizes) <= 1_000_000
