"""Log lines of a machine that has rooms of a bot elsewhere are kept no longer than the bot's."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from bot.background_task import background_task
from bot.folder_lock import folder_lock
from bot.logs.log_file import FILE_NAME
from bot.logs.retention import DAY_S, RETRY_S, keep_log_lines
from tests.bot.remote.peers import until
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

DAYS = 30


def lines(folder: Path, clock: FakeClock, *days_ago: float) -> None:
    """Write a line for each of these days."""
    times = [datetime.fromtimestamp(clock.now() - days * DAY_S, UTC).isoformat() for days in days_ago]
    (folder / FILE_NAME).write_text(
        "".join(
            json.dumps({"timestamp": at, "event": f"line_{days:g}"}) + "\n"
            for at, days in zip(times, days_ago, strict=True)
        )
    )


def left(folder: Path) -> list[str]:
    """Return the events that are left."""
    return [json.loads(line)["event"] for line in (folder / FILE_NAME).read_text().splitlines()]


@pytest.mark.asyncio
async def test_old_lines_go_at_the_start_and_daily(tmp_path: Path) -> None:
    """A line is gone the day after it is too old."""
    clock = FakeClock()
    lines(tmp_path, clock, 40, 29.5, 1)
    async with background_task(keep_log_lines(tmp_path, DAYS, clock), name="log-retention"):
        await until(lambda: clock.sleeping)
        assert left(tmp_path) == ["line_29.5", "line_1"]
        clock.advance(DAY_S)
        await until(lambda: left(tmp_path) == ["line_1"])


@pytest.mark.asyncio
async def test_one_process_of_a_machine_removes_lines_at_a_time(tmp_path: Path) -> None:
    """Another one tries again later, as after a failure."""
    clock = FakeClock()
    lines(tmp_path, clock, 40)
    with folder_lock(tmp_path):
        removing = background_task(keep_log_lines(tmp_path, DAYS, clock), name="log-retention")
        await removing.__aenter__()
        await until(lambda: clock.sleeping)
    assert left(tmp_path) == ["line_40"]
    (tmp_path / FILE_NAME).rename(tmp_path / "elsewhere")
    (tmp_path / FILE_NAME).mkdir()
    with capture_logs() as logs:
        clock.advance(RETRY_S)
        await until(lambda: logs and clock.sleeping)
    assert [line["event"] for line in logs] == ["log_lines_not_deleted"]
    (tmp_path / FILE_NAME).rmdir()
    (tmp_path / "elsewhere").rename(tmp_path / FILE_NAME)
    clock.advance(RETRY_S)
    await until(lambda: left(tmp_path) == [])
    await removing.__aexit__(None, None, None)


@pytest.mark.asyncio
async def test_where_nothing_is_ever_deleted_no_line_is(tmp_path: Path) -> None:
    """`tiers.retention_days = 0` means for ever."""
    clock = FakeClock()
    lines(tmp_path, clock, 4000)
    await keep_log_lines(tmp_path, 0, clock)
    assert left(tmp_path) == ["line_4000"]
