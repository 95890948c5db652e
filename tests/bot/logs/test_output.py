"""Logs contain events but no speech and no secrets."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
import sys
import threading
from pathlib import Path

import pytest
import structlog

from bot.errors import BotError
from bot.logs.log_file import log_path
from bot.logs.output import configured_logging, warnings_on_terminal
from compaction.errors import StoreError
from tests.bot.cli.terminal import Terminal
from tests.bot.logs.log_lines import lines_of

TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"
log = structlog.get_logger()


def test_an_event_is_one_json_line(tmp_path: Path) -> None:
    """An event is one JSON line: time, level, event name, then its fields and the fields bound to the context."""
    with configured_logging(data_dir=tmp_path, console=io.StringIO()) as logs:
        with structlog.contextvars.bound_contextvars(session_id="evening"):
            log.info("room_joined", guild_id=7, channel_id=8)
        log.bind(run_id="r1").warning("run_failed", latency_ms=1.5)
        log.debug("packet_seen")
        assert logs.path == log_path(tmp_path)
        assert logs.problem is None
    joined, failed = lines_of(log_path(tmp_path))
    assert list(joined) == ["timestamp", "level", "event", "session_id", "guild_id", "channel_id"]
    assert joined["timestamp"].endswith("Z")
    assert (joined["level"], joined["event"], joined["session_id"]) == ("info", "room_joined", "evening")
    assert (failed["level"], failed["run_id"], failed["latency_ms"]) == ("warning", "r1", 1.5)
    assert "session_id" not in failed


def test_the_terminal_has_its_own_level(tmp_path: Path) -> None:
    """It shows warnings, and the file has everything from info up."""
    console = io.StringIO()
    with configured_logging(data_dir=tmp_path, console=console):
        log.info("quiet_fact")
        log.warning("loud_fact", reason="heat")
    assert "quiet_fact" not in console.getvalue()
    assert "loud_fact" in console.getvalue()
    assert "reason=heat" in console.getvalue()
    assert "\x1b" not in console.getvalue()
    assert "quiet_fact" in log_path(tmp_path).read_text()


@pytest.fixture
def console() -> io.StringIO:
    """A terminal."""
    return io.StringIO()


def test_nothing_that_is_logged_acts_on_the_terminal(console: io.StringIO, tmp_path: Path) -> None:
    """A tool server's name for a tool, or a sentence that a library has, could clear the screen or forge lines."""
    with configured_logging(tmp_path, console=console):
        log.warning("mcp_tool_unusable", tool="\x1b]0;title\x07\x1b[2J\u202ename")
        log.warning("mcp_tool_unusable", detail="refused: \x1b[2J\rroom_joined")
    assert "\\u001b[2J" in console.getvalue()
    assert all(char.isprintable() or char == "\n" for char in console.getvalue())


def test_libraries_are_heard_from_warning_up(tmp_path: Path) -> None:
    """A warning of discord.py or openai becomes one event, with the constant part of its message and its place in the
    source; their lower levels are not logged.
    """
    with configured_logging(data_dir=tmp_path, console=io.StringIO()):
        logging.getLogger("discord.gateway").info("ready")
        logging.getLogger("openai").debug("Request options: what people said")
        logging.getLogger("discord.client").warning("Improper token %s passed", TOKEN)
    (heard,) = lines_of(log_path(tmp_path))
    assert heard["event"] == "library_logged"
    assert heard["logger"] == "discord.client"
    assert heard["detail"] == f"Improper token [str of {len(TOKEN)} withheld] passed"
    assert heard["location"].startswith("test_output:")


def test_without_a_log_only_warnings_are_told_and_not_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """A program reads stdout. What people said is in no warning either, and afterwards all is as before."""
    before = structlog.get_config()
    with warnings_on_terminal():
        log = structlog.get_logger()
        log.info("embedder_absent")
        log.warning("rows_unreadable", text="Ada said", count=3)
    told = capsys.readouterr()
    assert told.out == ""
    assert "embedder_absent" not in told.err
    assert "rows_unreadable" in told.err
    assert "count=3" in told.err
    assert "Ada" not in told.err
    assert structlog.get_config() == before


def test_tracebacks_show_no_variables(tmp_path: Path) -> None:
    """The file and the terminal have an error's traceback but not its local variables."""
    console = Terminal()
    with configured_logging(tmp_path, console=console, secrets=["hunter-two-three"]):
        local = "hunter" + "-two-" + "three"
        try:
            raise BotError(f"refused {local}")
        except BotError:
            log.exception("room_crashed")
    (crashed,) = lines_of(log_path(tmp_path))
    assert "BotError: refused [redacted]" in crashed["exception"]
    for shown in (console.getvalue(), json.dumps(crashed)):
        assert "Traceback" in shown
        assert "hunter" not in shown


def test_what_people_said_is_in_no_traceback(console: io.StringIO, tmp_path: Path) -> None:
    """A library's error message may quote the data it failed on, so only our own and the system's messages
    are logged.
    """
    word = "xylo" + "phone"  # its lines of code stand in the traceback

    def broken() -> None:
        try:
            try:
                json.loads(word)
            except ValueError as error:
                raise KeyError(word) from error
        except KeyError:
            raise ExceptionGroup(word, [RuntimeError(word), StoreError("It is full.")]) from None

    with configured_logging(data_dir=tmp_path, console=console):
        try:
            broken()
        except ExceptionGroup:
            log.exception("room_crashed")
        try:
            json.loads(word)
        except ValueError as error:
            error.__cause__ = OSError(28, "No space left on device")
            log.warning("tool_crashed", exc_info=error)
    group, chained = (line["exception"] for line in lines_of(log_path(tmp_path)))
    assert word not in console.getvalue() + str((group, chained))
    assert "in broken" in group
    for told in ("ExceptionGroup", "RuntimeError", "StoreError: It is full."):
        assert told in group
    for told in ("OSError: [Errno 28] No space left on device", "JSONDecodeError"):
        assert told in chained


async def fail(said: str) -> None:
    raise RuntimeError(said)


def test_an_error_that_nobody_retrieved_shows_no_speech(console: io.StringIO, tmp_path: Path) -> None:
    """asyncio reports a task whose error was never retrieved with the representation of the error, which may quote
    speech. The log has asyncio's own words, the traceback and the error's type.
    """
    said = "we meet" + " at nine"

    async def leave_a_failed_task() -> None:
        task = asyncio.create_task(fail(said))
        await asyncio.wait({task})

    with configured_logging(data_dir=tmp_path, console=console):
        asyncio.run(leave_a_failed_task())
        gc.collect()
    (told,) = lines_of(log_path(tmp_path))
    assert told["detail"].startswith("Task exception was never retrieved [")
    assert "in fail" in told["exception"]
    assert "RuntimeError" in told["exception"]
    assert said not in console.getvalue() + json.dumps(told)


def test_a_service_writes_no_ids_on_stderr(console: io.StringIO, tmp_path: Path) -> None:
    """A service manager keeps what is written there, and nobody can be forgotten in its journal. The file has ids."""
    with configured_logging(tmp_path, console=console):
        log.warning("reply_refused", speaker_id=4711, user_ids=[4712], seconds=3)
    written, shown = log_path(tmp_path).read_text(), console.getvalue()
    for each in ("4711", "4712"):
        assert each in written
        assert each not in shown
    assert "reply_refused" in shown


def test_errors_that_python_prints_itself_show_no_speech(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of threads and of destructors. Python would print the message, which may quote the data."""
    before = threading.excepthook, sys.unraisablehook

    class Broken:
        """Fails where nobody can catch it."""

        def __del__(self) -> None:
            raise KeyError("xylo" + "phone")

    def fail() -> None:
        raise ValueError("xylo" + "phone")

    with configured_logging(data_dir=tmp_path):
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        Broken()
        gc.collect()
    assert [(line["event"], line["exception"].splitlines()[-1]) for line in lines_of(log_path(tmp_path))] == [
        ("thread_failed", "ValueError"),
        ("error_not_raised", "KeyError"),
    ]
    printed = "".join(capfd.readouterr())
    assert "thread_failed" in printed
    assert "xylophone" not in printed + log_path(tmp_path).read_text()
    assert (threading.excepthook, sys.unraisablehook) == before
