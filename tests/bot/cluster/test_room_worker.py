"""The process of a room worker: there is one, it comes back, and it is nobody's child."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
import threading
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bot.cluster.room_worker import FIRST_PAUSE_S, LONGEST_PAUSE_S, STEADY_S, RoomWorker
from bot.cluster.worker_folder import OfferedProcesses, worker_folder, workers_here
from bot.cluster.worker_output import KEPT_BYTES, cut_output
from tests.bot.cluster.worker_program import LINE, ONE_MORE, SIGNALS_FILE
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from bot.cluster.worker_folder import WorkerFolder

pytestmark = pytest.mark.process

PROGRAM = (sys.executable, "-m", "tests.bot.cluster.worker_program")


class WatchedClock(FakeClock):
    """Notes every pause, and lets each pass at once. `endless_s`: a pause of this length, or longer, does not end."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self.endless_s = math.inf

    async def sleep(self, seconds: float) -> None:
        """Let other processes work for a moment."""
        self.pauses.append(seconds)
        if seconds >= self.endless_s:
            await asyncio.Event().wait()
        self.advance(seconds if seconds > FIRST_PAUSE_S else 0)
        await asyncio.sleep(0.01)


class Keeper:
    """A worker that is kept, and its folder."""

    def __init__(self, folder: WorkerFolder, *more: str) -> None:
        self.folder = folder
        self.clock = WatchedClock()
        self.worker = RoomWorker(folder, [*PROGRAM, str(folder.path), *more], self.clock)
        self.task = asyncio.create_task(self.worker.keep())

    async def process(self, *, other_than: Sequence[int] = ()) -> int:
        """Wait until the worker has a process, and return it."""
        await until(lambda: self.folder.process not in (None, *other_than))
        process = self.folder.process
        assert process is not None
        return process

    async def stop(self) -> None:
        """Stop keeping the process, as an actor does that is killed."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


def parent(process: int) -> int:
    """Return the process's parent."""
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def is_alive(process: int) -> bool:
    """Return whether there is a process of this number that works."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


async def until(holds: Callable[[], bool]) -> None:
    """Wait for other processes, which tell nobody."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - nothing here could set an event
            await asyncio.sleep(0.01)


@asynccontextmanager
async def kept(tmp_path: Path, *more: str, name: str = "worker-1") -> AsyncIterator[Keeper]:
    """Keep a worker, and end its process."""
    keeper = Keeper(worker_folder(tmp_path, name), *more)
    try:
        yield keeper
    finally:
        await keeper.stop()
        if (process := keeper.folder.process) is not None:
            os.kill(process, signal.SIGKILL)


@pytest.mark.asyncio
async def test_a_process_that_is_killed_comes_back(tmp_path: Path) -> None:
    """The worker has another one, and tells what that offers."""
    async with kept(tmp_path) as keeper:
        first = await keeper.process()
        await until(lambda: keeper.folder.read_processes() == OfferedProcesses(busy=1, waiting=1))
        os.kill(first, signal.SIGKILL)
        assert await keeper.process(other_than=[first])
        assert workers_here(tmp_path) == [keeper.folder]


@pytest.mark.asyncio
async def test_the_process_outlives_its_keeper_and_is_taken_over(tmp_path: Path) -> None:
    """The next keeper starts none beside it, and the process is no child of the first."""
    async with kept(tmp_path) as first:
        process = await first.process()
        assert parent(process) != os.getpid()
        await first.stop()
        async with kept(tmp_path) as second:
            await until(lambda: bool(second.clock.pauses))
            assert second.folder.process == process
            os.kill(process, signal.SIGKILL)
            assert await second.process(other_than=[process])


@pytest.mark.asyncio
async def test_a_process_with_other_words_hands_over_first(tmp_path: Path) -> None:
    """A worker that serves another bot, or another number of rooms, gets a new process."""
    async with kept(tmp_path) as first:
        process = await first.process()
        await first.stop()
        async with kept(tmp_path, "another") as second:
            assert await second.process(other_than=[process])
            await until(lambda: not is_alive(process))


@pytest.mark.asyncio
async def test_a_process_that_cannot_run_is_tried_after_growing_pauses(tmp_path: Path) -> None:
    """The worker says what the process said."""
    async with kept(tmp_path, "fails") as keeper:
        # The next process would begin what it says anew.
        keeper.clock.endless_s = 8.0
        await until(lambda: [pause for pause in keeper.clock.pauses if pause > FIRST_PAUSE_S][:3] == [2, 4, 8])
        assert keeper.folder.last_words() == "There is no database."
        assert keeper.folder.process is None
        assert max(keeper.clock.pauses) <= LONGEST_PAUSE_S


@pytest.mark.asyncio
async def test_after_a_process_that_lasted_the_pauses_begin_anew(tmp_path: Path) -> None:
    """A crash a day is not a fault that repeats itself."""
    async with kept(tmp_path) as keeper:
        first = await keeper.process()
        os.kill(first, signal.SIGKILL)
        second = await keeper.process(other_than=[first])
        keeper.clock.advance(STEADY_S)
        os.kill(second, signal.SIGKILL)
        third = await keeper.process(other_than=[first, second])
        os.kill(third, signal.SIGKILL)
        await keeper.process(other_than=[first, second, third])
        assert [pause for pause in keeper.clock.pauses if pause > FIRST_PAUSE_S] == [2 * FIRST_PAUSE_S]


@pytest.mark.asyncio
async def test_a_worker_that_leaves_returns_when_the_process_has_ended(tmp_path: Path) -> None:
    """Its actor can end then."""
    async with kept(tmp_path) as keeper:
        process = await keeper.process()
        await keeper.stop()
        await keeper.worker.hand_over()
        assert keeper.folder.process is None
        await until(lambda: not is_alive(process))


@pytest.mark.asyncio
@pytest.mark.parametrize("times", [1, 2])
async def test_a_worker_that_leaves_while_its_process_starts_ends_it_too(tmp_path: Path, times: int) -> None:
    """Its actor is gone afterwards, so nobody else would. `times`: how often it is told to leave."""
    begun, goes_on = threading.Event(), threading.Event()
    async with kept(tmp_path) as keeper:
        start = keeper.worker._start_detached

        def start_slowly() -> None:
            begun.set()
            assert goes_on.wait(PATIENCE_S)
            start()

        async def leave() -> None:
            await keeper.stop()
            await keeper.worker.hand_over()

        keeper.worker._start_detached = start_slowly  # type: ignore[method-assign]
        await until(begun.is_set)
        leaving = []
        for _ in range(times):
            leaving.append(asyncio.create_task(leave()))
            for _ in range(10):
                await asyncio.sleep(0)
        left_at_once = [each.done() for each in leaving]
        goes_on.set()
        await asyncio.gather(*leaving)
        assert left_at_once == [False] * times
        assert keeper.folder.process is None
        process = int(keeper.folder.process_file.read_text("ascii"))
        await until(lambda: not is_alive(process))


async def asked_thrice(keeper: Keeper) -> str:
    """Let a process that lingers hand over, be asked twice more, and end. Return the signals that it got."""
    process = await keeper.process()
    signals = keeper.folder.path / SIGNALS_FILE
    await until(lambda: keeper.folder.read_processes() == OfferedProcesses(busy=1, waiting=1))
    await keeper.stop()
    keeper.folder.hand_over()
    await until(lambda: signals.read_text() == "x")
    looks = len(keeper.clock.pauses)
    leaving = [asyncio.create_task(keeper.worker.hand_over()) for _ in range(2)]
    await until(lambda: len(keeper.clock.pauses) > looks + 4)
    os.kill(process, signal.SIGUSR1)
    await asyncio.gather(*leaving)
    return signals.read_text()


@pytest.mark.asyncio
async def test_a_process_that_hands_over_is_asked_once(tmp_path: Path) -> None:
    """A machine that is drained may be told `cluster down` meanwhile, and a second signal would end it at once. The
    worker's next process is asked again.
    """
    for _ in range(2):
        async with kept(tmp_path, "lingers") as keeper:
            assert await asked_thrice(keeper) == "x"


@pytest.mark.asyncio
async def test_a_process_goes_on_speaking_when_its_output_is_cut(tmp_path: Path) -> None:
    """The file begins anew with its last lines, and has no hole where the others were."""
    async with kept(tmp_path, "talks") as keeper:
        process = await keeper.process()
        await until(lambda: keeper.folder.read_processes() == OfferedProcesses(busy=1, waiting=1))
        cut_output(keeper.folder.output)
        os.kill(process, signal.SIGUSR1)
        await until(lambda: keeper.folder.last_words() == ONE_MORE)
        said = keeper.folder.output.read_text("ascii").splitlines(keepends=True)
        assert said == [LINE] * (KEPT_BYTES // len(LINE)) + [f"{ONE_MORE}\n"]
