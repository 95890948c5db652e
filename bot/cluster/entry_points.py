"""Lets every machine of the cluster take speech from the bots and rooms that run there.

Ray Serve listens on the first machine and where one of its replicas runs, and places its replicas by chance. A machine
without a recogniser would refuse its bots, and they would hear by themselves. So each machine has one replica that does
nothing: for that, Ray Serve listens there (`front`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from bot.cluster.state import machines_with_work

if TYPE_CHECKING:
    from collections.abc import Callable

    from ray.serve import Application

APP: Final = "roomtone-entry-points"
# More than any cluster of Ray has machines.
_MOST = 10_000
# Ray Serve asks ten times a second how many there should be, and a machine more or less is no hurry.
_COUNT_EVERY_S = 1.0
# Of what each replica is: nothing, in each release. To another one Ray Serve would change them one after the other, and
# stop at a machine that cannot start its own.
_VERSION = "1"


class EntryPoint:
    """What Ray Serve runs once on each machine."""


class OnePerMachine:
    """Ray Serve's autoscaling policy for entry points: as many as there are machines that do not leave. One that leaves
    answers until it is gone.

    `count`: counts the machines. `monotonic`: the time in seconds.
    """

    def __init__(
        self, count: Callable[[], int] = machines_with_work, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._count = count
        self._monotonic = monotonic
        self._wanted = 0
        self._count_at = 0.0

    def __call__(self, _: Any) -> tuple[int, dict[str, Any]]:
        """Return how many there should be, and nothing to keep."""
        now = self._monotonic()
        if not self._wanted or now >= self._count_at:
            self._wanted, self._count_at = max(1, self._count()), now + _COUNT_EVERY_S
        return self._wanted, {}


def entry_points() -> Application:
    """Return the application that Ray Serve runs. It leaves alone those that are there."""
    from ray import serve
    from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

    deployment = serve.deployment(
        name="entry-point",
        max_replicas_per_node=1,
        ray_actor_options={"num_cpus": 0},
        autoscaling_config=AutoscalingConfig(
            min_replicas=1,
            max_replicas=_MOST,
            upscale_delay_s=0.0,
            downscale_delay_s=0.0,
            policy=AutoscalingPolicy(  # type: ignore[no-untyped-call]
                policy_function="bot.cluster.entry_points:OnePerMachine"
            ),
        ),
    )(EntryPoint)
    return deployment.options(version=_VERSION, _internal=True).bind()
