"""Ray's first process on this machine, also after the `cluster up` that started it has gone.

It is in a session of its own, so it outlives a `cluster up` that was killed. It holds the lock of a folder for as long
as it lives, and its number is written there (`running_process`): a number that the system has given to another program
since is never taken for it.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from bot.cluster.running_process import running_process

if TYPE_CHECKING:
    from pathlib import Path

    from bot.clock import Clock

# Seconds Ray may spend on ending what runs on the node, and then on its own processes; afterwards they are killed.
STOP_TIMEOUT_S: Final = 20.0
# Below the cluster's folder.
_RAY: Final = "ray"
_LOOK_EVERY_S: Final = 0.2


def ray_folder(cluster_folder: Path) -> Path:
    """Return the folder whose lock Ray's first process holds."""
    return cluster_folder / _RAY


def ray_process(cluster_folder: Path) -> int | None:
    """Return Ray's first process on this machine; None if there is none."""
    return running_process(ray_folder(cluster_folder))


def kill_ray(cluster_folder: Path) -> None:
    """Kill Ray on this machine, if it runs. Its recognisers end when they miss it."""
    _send(cluster_folder, signal.SIGKILL)


async def end_ray(cluster_folder: Path, clock: Clock) -> None:
    """End Ray on this machine, which this process has not started, and kill it after `STOP_TIMEOUT_S`. Returns when it
    is gone.
    """
    _send(cluster_folder, signal.SIGTERM)
    killed_at = clock.monotonic() + STOP_TIMEOUT_S
    while ray_process(cluster_folder) is not None:
        if clock.monotonic() >= killed_at:
            kill_ray(cluster_folder)
        await clock.sleep(_LOOK_EVERY_S)


def _send(cluster_folder: Path, number: signal.Signals) -> None:
    """Send a signal to Ray's first process; `SIGKILL` goes to its whole group, for which it can do nothing any more."""
    if (process := ray_process(cluster_folder)) is None:
        return
    with suppress(ProcessLookupError):
        if number is signal.SIGKILL:
            os.killpg(process, number)
        else:
            os.kill(process, number)
