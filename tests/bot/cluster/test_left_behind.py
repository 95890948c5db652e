"""Room workers whose actor is gone: they serve on for a while, and then hand their rooms over."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from bot.cluster.left_behind import WANTED_WITHIN_S, end_left_behind, hand_over_workers, workers_in_use
from bot.cluster.worker_folder import WorkerFolder, worker_folder
from tests.bot.cluster.test_room_worker import PROGRAM, WatchedClock, until
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.process


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[WorkerFolder]]:
    """Two workers with their processes."""
    folders = [worker_folder(tmp_path, name) for name in ("worker-1", "worker-2")]
    with ExitStack() as stack:
        for folder in folders:
            with folder.starting(PROGRAM) as lock:
                process = stack.enter_context(subprocess.Popen([*PROGRAM, str(folder.path)], pass_fds=(lock,)))
                stack.callback(process.kill)
                folder.process_file.write_text(str(process.pid))
        yield folders


async def looks(clock: FakeClock, seconds: float) -> None:
    """Let the time pass in which it is looked several times."""
    for _ in range(round(seconds / 5)):
        async with asyncio.timeout(PATIENCE_S):
            await clock.until_somebody_sleeps()
        clock.advance(5)
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_only_a_worker_that_is_left_behind_for_long_is_ended(tmp_path: Path, workers: list[WorkerFolder]) -> None:
    """One with an actor stays, and so does one whose actor comes back in time."""
    first, second = workers
    await until(lambda: workers_in_use(tmp_path) == workers)
    clock = FakeClock()
    ending = asyncio.create_task(end_left_behind(tmp_path, clock))
    try:
        with first.keeping():
            await looks(clock, WANTED_WITHIN_S - 5)
            assert workers_in_use(tmp_path) == workers
            await looks(clock, 15)
            await until(lambda: second.process is None)
            assert first.process is not None
        await looks(clock, WANTED_WITHIN_S - 5)
        with first.keeping():
            await looks(clock, 10)
        await looks(clock, WANTED_WITHIN_S - 5)
        assert first.process is not None
    finally:
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)


@pytest.mark.asyncio
async def test_a_machine_that_leaves_hands_all_its_workers_over(tmp_path: Path, workers: list[WorkerFolder]) -> None:
    """It returns when no process is left."""
    await until(lambda: workers_in_use(tmp_path) == workers)
    async with asyncio.timeout(PATIENCE_S):
        await hand_over_workers(tmp_path, WatchedClock())
    assert workers_in_use(tmp_path) == []


@pytest.mark.asyncio
async def test_a_machine_without_workers_has_nothing_to_hand_over(tmp_path: Path) -> None:
    """Nor has one that never was in a cluster."""
    await hand_over_workers(tmp_path / "cluster", FakeClock())
    assert workers_in_use(tmp_path / "cluster") == []
