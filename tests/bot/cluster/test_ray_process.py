"""Ray's first process is known, and ended, also by who has not started it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bot.cluster.node import NodeSettings, running_node
from bot.cluster.ray_process import STOP_TIMEOUT_S, end_ray, kill_ray, ray_folder, ray_process
from bot.cluster.running_process import PROCESS_FILE, for_a_child
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.process


class WatchedClock(FakeClock):
    """Notes every pause, and lets each pass at once."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Let other processes work for a moment."""
        self.pauses.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0.01)


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


# What `ray start --block` is to us.
RUNS = "import signal; print('Ray runtime started.', flush=True); signal.pause()"
# One that nobody can end in order.
HANGS = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {RUNS}"
# One that has a process of its own.
HAS_CHILD = f"import subprocess; subprocess.Popen(['sleep', 'infinity'], close_fds=False); {HANGS}"


@contextmanager
def left_ray(cluster_folder: Path, program: str = RUNS) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the Ray of a `cluster up` that is gone, once it runs."""
    folder = ray_folder(cluster_folder)
    with for_a_child(folder) as lock:
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True, pass_fds=(lock,)
        )
        (folder / PROCESS_FILE).write_text(str(process.pid), "ascii")
    with process:
        assert process.stdout is not None
        assert process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def another_program() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that has nothing to do with Ray."""
    with subprocess.Popen(["sleep", "infinity"], start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


class QuickClock(FakeClock):
    """Lets each pause pass at once, and notes when it is."""

    async def sleep(self, seconds: float) -> None:
        """Let the event loop work."""
        self.advance(seconds)
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_ray_is_known_for_as_long_as_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that starts it writes its number down, and Ray itself holds the lock: a killed command keeps neither
    from being true.
    """
    monkeypatch.setattr("bot.cluster.node.start_command", lambda _: [sys.executable, "-c", RUNS])
    async with running_node(NodeSettings(tmp_path)) as ended:
        process = ray_process(tmp_path)
        assert process is not None
        assert os.getsid(process) == process != os.getsid(0)
        assert not ended.done()
    assert ray_process(tmp_path) is None
    assert not is_alive(process)


@pytest.mark.asyncio
async def test_a_left_ray_is_ended_in_order(tmp_path: Path) -> None:
    """It gets SIGTERM, and nothing else while its time has not passed."""
    with left_ray(tmp_path) as process:
        async with asyncio.timeout(PATIENCE_S):
            await end_ray(tmp_path, WatchedClock())
        assert process.wait() == -signal.SIGTERM


@pytest.mark.asyncio
@pytest.mark.parametrize("program", [HANGS, HAS_CHILD])
async def test_a_left_ray_that_hangs_is_killed(tmp_path: Path, program: str) -> None:
    """After its time, with its whole group."""
    clock = QuickClock()
    began = clock.monotonic()
    with left_ray(tmp_path, program) as process:
        async with asyncio.timeout(PATIENCE_S):
            await end_ray(tmp_path, clock)
        assert process.wait() == -signal.SIGKILL
        assert ray_process(tmp_path) is None
    assert clock.monotonic() - began >= STOP_TIMEOUT_S


@pytest.mark.asyncio
async def test_a_number_that_was_used_again_is_not_rays(tmp_path: Path) -> None:
    """Ray was killed and its number stayed behind; another program that has it now goes on."""
    with left_ray(tmp_path) as process:
        kill_ray(tmp_path)
        assert process.wait() == -signal.SIGKILL
    with another_program() as other:
        (ray_folder(tmp_path) / PROCESS_FILE).write_text(str(other.pid), "ascii")
        assert ray_process(tmp_path) is None
        kill_ray(tmp_path)
        await end_ray(tmp_path, FakeClock())
        assert is_alive(other.pid)
