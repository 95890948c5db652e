"""What a worker's process says stays small, and its end is read without the rest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import structlog

from bot.cluster.worker_output import (
    KEPT_BYTES,
    LOOK_EVERY_S,
    MOST_BYTES,
    cut_output,
    keep_output_short,
    last_line,
    last_warning,
)
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

LINE = b"a line of twenty-one\n"


@pytest.mark.parametrize("size", [0, 1, KEPT_BYTES, MOST_BYTES])
def test_a_file_within_its_bound_stays(tmp_path: Path, size: int) -> None:
    """To the byte."""
    file = tmp_path / "output.log"
    file.write_bytes(b"x" * size)
    cut_output(file)
    assert file.read_bytes() == b"x" * size


def test_the_last_whole_lines_are_kept(tmp_path: Path) -> None:
    """A file that is one endless line keeps nothing of it."""
    file = tmp_path / "output.log"
    file.write_bytes(LINE * (MOST_BYTES // len(LINE)) + b"x" * len(LINE) + b"\nlast\n")
    cut_output(file)
    kept = file.read_bytes()
    assert KEPT_BYTES - len(LINE) <= len(kept) <= KEPT_BYTES
    assert kept.startswith(LINE)
    assert kept.endswith(b"x\nlast\n")
    file.write_bytes(b"x" * (MOST_BYTES + 1))
    cut_output(file)
    assert file.read_bytes() == b""


@pytest.mark.asyncio
async def test_it_is_cut_for_as_long_as_the_process_lives(tmp_path: Path) -> None:
    """A file that is not there yet, or no longer, is no problem."""
    file, clock = tmp_path / "output.log", FakeClock()
    keeping = asyncio.create_task(keep_output_short(file, clock))
    try:
        for _ in range(2):
            await clock.until_somebody_sleeps()
            file.write_bytes(LINE * (MOST_BYTES // len(LINE) + 1))
            clock.advance(LOOK_EVERY_S)
            await asyncio.sleep(0)
            await clock.until_somebody_sleeps()
            assert file.stat().st_size <= KEPT_BYTES
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (b"", ""),
        (b"\n \n", ""),
        (b"There is no database.", "There is no database."),
        (b"Traceback\n  There is no database.\n\n", "There is no database."),
        (b"\xff" * 9_000 + b"\nlast \xff\n", "last \ufffd"),
        (b"first\n" + b"x" * 1_000_000, "x" * 300),
    ],
)
def test_the_last_line_is_what_the_operator_reads(tmp_path: Path, said: bytes, line: str) -> None:
    """However long the file is, whatever bytes it has."""
    file = tmp_path / "output.log"
    file.write_bytes(said)
    assert last_line(file) == line


def test_a_process_that_has_said_nothing_has_no_last_line(tmp_path: Path) -> None:
    """There is no file before it is started."""
    assert last_line(tmp_path / "output.log") == ""
    assert last_warning(tmp_path / "output.log") == ""


def test_a_warning_is_what_the_log_calls_so(tmp_path: Path) -> None:
    """What the process says at its start is none, and what it logs below a warning neither."""
    file, console = tmp_path / "output.log", structlog.dev.ConsoleRenderer(colors=False)
    file.write_text("Offering at most 4 processes to the bot at 10.0.0.1:8572, as north.\n", "utf-8")
    assert last_warning(file) == ""
    said = [
        console(None, level, {"level": level, "event": f"{level}_{number}"})
        for number, level in enumerate(("error", "warning", "info"))
    ]
    file.write_text("\n".join(said), "utf-8")
    assert last_warning(file).endswith("warning_1")
    file.write_text(said[0], "utf-8")
    assert last_warning(file).endswith("error_0")
