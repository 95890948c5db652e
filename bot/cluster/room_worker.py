"""Keeps the process of one room worker: starts it, starts it anew when it has ended, and lets it hand over.

The process is no child of this one: Ray ends the children of its own processes with them, and a room must outlive
Ray. So it is known by its folder (`worker_folder`), and one that lives already is kept and not started a second time.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import TYPE_CHECKING, Final

import structlog

from bot.errors import SetupError
from voice.retry_pause import retry_pause_s
from voice.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.clock import Clock
    from bot.cluster.worker_folder import WorkerFolder

log = structlog.get_logger()

LOOK_EVERY_S: Final = 1.0
# After a process that has ended; doubled up to the longest, and begun anew after one that has lasted.
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 300.0
STEADY_S: Final = 60.0
# The shell leaves the process to the system, writes its number and ends. A process of Ray's is the first that the
# system ends when memory is short, which a room must not inherit. What it says is appended, so that `worker_output` can
# cut the file.
_DETACHED: Final = """umask 077
{ echo 0 >/proc/self/oom_score_adj; } 2>/dev/null
output=$1 number=$2
shift 2
: >"$output"
"$@" >>"$output" 2>&1 &
echo $! >"$number"
"""


class RoomWorker:
    """`command`: offers rooms. It is the worker's process for as long as it runs.

    *Ownership*: who runs `keep` owns its task. The process belongs to nobody and outlives this object.
    """

    def __init__(self, folder: WorkerFolder, command: Sequence[str], clock: Clock) -> None:
        self._folder = folder
        self._command = command
        self._clock = clock

    async def keep(self) -> None:
        """Have the process running until this is cancelled. One that is just being started is there afterwards, so that
        `hand_over` ends it.
        """
        failures = 0
        while True:
            adopted = self._folder.process
            if adopted is not None and not self._folder.has_command(self._command):
                log.info("worker_changed", worker=self._folder.name)
                await self.hand_over()
                adopted = None
            since = self._clock.monotonic()
            if adopted is None:
                await self._start()
            else:
                log.info("worker_process_kept", worker=self._folder.name, pid=adopted)
            await self._until_gone()
            log.warning("worker_process_gone", worker=self._folder.name, said=self._folder.last_words())
            if self._clock.monotonic() - since >= STEADY_S:
                failures = 0
            failures += 1
            await self._clock.sleep(retry_pause_s(failures, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S))

    async def hand_over(self) -> None:
        """Let the process hand its rooms over, and return when it has ended."""
        self._folder.hand_over()
        await self._until_gone()

    async def _until_gone(self) -> None:
        while self._folder.process is not None:
            await self._clock.sleep(LOOK_EVERY_S)

    async def _start(self) -> None:
        # Not cut off, because nobody would end a process that comes later.
        await run_shielded(self._try_to_start(), name="worker-start")

    async def _try_to_start(self) -> None:
        try:
            await asyncio.to_thread(self._start_detached)
        except (OSError, SetupError, subprocess.CalledProcessError) as error:
            log.warning("worker_process_not_started", worker=self._folder.name, problem=error)
        else:
            log.info("worker_process_started", worker=self._folder.name, pid=self._folder.process)

    def _start_detached(self) -> None:
        files = (str(self._folder.output), str(self._folder.process_file))
        with self._folder.starting(self._command) as lock:
            subprocess.run(  # noqa: S603 - words of our own
                ["/bin/sh", "-c", _DETACHED, "sh", *files, *self._command],
                stdin=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
                start_new_session=True,
                pass_fds=(lock,),
                check=True,
            )
