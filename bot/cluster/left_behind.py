"""The room workers on this machine whose actor is gone: they serve on, and are ended once they are not wanted.

While Ray is away nobody ends them, because people are in their rooms. Once it has been back for a while, each worker
has an actor again, here or elsewhere. What has none here is one too many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from bot.cluster.worker_folder import workers_here

if TYPE_CHECKING:
    from pathlib import Path

    from bot.clock import Clock
    from bot.cluster.worker_folder import WorkerFolder

log = structlog.get_logger()

# Ray starts an actor anew within seconds. After the loss of its head, somebody has to ask for the workers again, or the
# service of the first machine does, once Ray runs there.
WANTED_WITHIN_S: Final = 300.0
_LOOK_EVERY_S: Final = 5.0
_ENDED_EVERY_S: Final = 0.5


async def end_left_behind(cluster_folder: Path, clock: Clock) -> None:
    """Let workers hand their rooms over that have had no actor for `WANTED_WITHIN_S`, until this is cancelled."""
    since: dict[str, float] = {}
    while True:
        alone = [worker for worker in workers_here(cluster_folder) if worker.process is not None and not worker.is_kept]
        since = {worker.name: since.get(worker.name, clock.monotonic()) for worker in alone}
        for worker in alone:
            if clock.monotonic() - since[worker.name] >= WANTED_WITHIN_S:
                log.info("worker_left_behind", worker=worker.name)
                worker.hand_over()
                # It takes a while.
                since[worker.name] = clock.monotonic() + WANTED_WITHIN_S
        await clock.sleep(_LOOK_EVERY_S)


def workers_in_use(cluster_folder: Path) -> list[WorkerFolder]:
    """Return the workers of this machine that have a process."""
    return [worker for worker in workers_here(cluster_folder) if worker.process is not None]


async def hand_over_workers(cluster_folder: Path, clock: Clock) -> None:
    """Let all workers of this machine hand their rooms over, one after the other, and return when they have ended."""
    for worker in workers_in_use(cluster_folder):
        log.info("worker_hands_over", worker=worker.name)
        worker.hand_over()
        while worker.process is not None:
            await clock.sleep(_ENDED_EVERY_S)
