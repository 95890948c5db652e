"""The log file rotates, is begun anew when it was moved, and costs only its lines when it cannot be written."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import structlog

from bot.logs.log_file import LogFile, log_path
from bot.logs.output import configured_logging
from tests.bot.logs.log_lines import lines_of

log = structlog.get_logger()


def rotated(path: Path) -> list[Path]:
    """Return the files of a log, oldest first."""
    return [*sorted(path.parent.glob(path.name + ".*"), reverse=True), path]


def test_files_rotate_by_size_and_count(tmp_path: Path) -> None:
    """No file exceeds the size limit, only some old files are kept, and the newest lines are complete and in order."""
    with configured_logging(data_dir=tmp_path, console=io.StringIO(), max_file_bytes=1000):
        for number in range(120):
            log.info("fact_told", number=number)
    files = rotated(log_path(tmp_path))
    assert [each.name for each in files] == [*(f"roomtone.jsonl.{each}" for each in (5, 4, 3, 2, 1)), "roomtone.jsonl"]
    assert all(each.stat().st_size <= 1000 for each in files)
    numbers = [event["number"] for each in files for event in lines_of(each)]
    assert numbers == list(range(numbers[0], 120))


def test_a_log_moved_or_deleted_is_begun_anew(tmp_path: Path) -> None:
    """If the log file is renamed or deleted, the next line goes to a new file."""
    path = log_path(tmp_path)
    with configured_logging(data_dir=tmp_path, console=io.StringIO()):
        log.info("first")
        path.rename(tmp_path / "moved")
        log.info("second")
        path.unlink()
        path.parent.rmdir()
        log.info("third")
    assert [each["event"] for each in lines_of(tmp_path / "moved")] == ["first"]
    assert [each["event"] for each in lines_of(path)] == ["third"]


def problem_of(logs: LogFile) -> str | None:
    """Return the current problem. A function, because the type checker takes the attribute for unchanged."""
    return logs.problem


def test_an_impossible_directory_costs_only_the_file(tmp_path: Path) -> None:
    """Without a log file the bot goes on and reports the problem once. When the directory is usable again, so is the
    log, which says how many lines are missing.
    """
    (tmp_path / "logs").write_text("in the way")
    console = io.StringIO()
    with configured_logging(data_dir=tmp_path, console=console) as logs:
        problem = problem_of(logs)
        assert problem is not None
        assert problem.startswith(f"The log {log_path(tmp_path)} cannot be written (")
        log.warning("work_went_on")
        log.warning("work_went_on")
        assert console.getvalue().count("log_file_refused") == 1
        assert console.getvalue().count("work_went_on") == 2
        (tmp_path / "logs").unlink()
        log.warning("disk_mended")
        assert problem_of(logs) is None
    written = lines_of(log_path(tmp_path))
    assert [each["event"] for each in written] == ["disk_mended", "log_lines_lost"]
    # The two, and the line that tells of the problem.
    assert written[1]["line_count"] == 3


def test_a_full_disk_costs_only_the_lines() -> None:
    """On a full disk, logging raises nothing and reports the problem once, and the file can still be closed.

    `/dev/full` refuses every write.
    """
    file = LogFile(Path("/dev/full"), max_bytes=1000, keep_files=1)
    file.setFormatter(logging.Formatter("%(message)s"))
    with structlog.testing.capture_logs() as told:
        for _ in range(3):
            file.emit(logging.makeLogRecord({"msg": "line"}))
    assert file.problem is not None
    assert "No space left on device" in file.problem
    assert [each["event"] for each in told] == ["log_file_refused"]
    file.close()


def test_a_line_that_cannot_be_made_is_dropped(tmp_path: Path) -> None:
    """A library's broken format string loses one line, which the log says, and raises nothing."""
    with configured_logging(data_dir=tmp_path, console=io.StringIO()) as logs:
        logs.emit(logging.makeLogRecord({"msg": "%d", "args": ("no number",), "levelno": logging.WARNING}))
        log.info("work_went_on")
    assert [each["event"] for each in lines_of(log_path(tmp_path))] == ["work_went_on", "log_lines_lost"]
