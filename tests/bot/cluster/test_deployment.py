"""What Ray's autoscaler asks, and how the cluster's state reads."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bot.cluster.deployment import ClusterState, NodeState, PoolState, scale

MACHINE = NodeState("10.0.0.1", alive=True, cpus=4, gpus=1)


@pytest.mark.parametrize(
    ("reported", "wanted"),
    [
        ({"oldest_wait_s": {"a": 0.0, "b": 1.5}, "busy_share": {"a": 0.9, "b": 1.0}}, 3),
        ({"oldest_wait_s": {"a": 0.0, "b": 0.0}, "busy_share": {"a": 0.1, "b": 0.1}}, 1),
        ({}, 2),
        (None, 2),
    ],
)
def test_the_autoscaler_follows_the_policy(reported: dict[str, dict[str, float]] | None, wanted: int) -> None:
    """What the recognisers report decides; without a report nothing changes."""
    context = SimpleNamespace(
        aggregated_metrics=reported,
        target_num_replicas=2,
        capacity_adjusted_min_replicas=1,
        capacity_adjusted_max_replicas=4,
    )
    assert scale(context) == (wanted, {})


@pytest.mark.parametrize(
    ("state", "lines"),
    [
        (
            ClusterState((MACHINE,), PoolState("RUNNING", running=3, starting=0, problem="")),
            ["10.0.0.1: 4 CPUs, 1 GPUs", "Recognisers that hear: 3 (running)."],
        ),
        (
            ClusterState(
                (MACHINE, NodeState("10.0.0.2", alive=False, cpus=0, gpus=0)),
                PoolState("UNHEALTHY", running=1, starting=1, problem="No node has a free CPU."),
            ),
            [
                "10.0.0.1: 4 CPUs, 1 GPUs",
                "10.0.0.2: lost",
                "Recognisers that hear: 1, and 1 more start (unhealthy).",
                "No node has a free CPU.",
            ],
        ),
        (
            ClusterState((MACHINE,), None),
            [
                "10.0.0.1: 4 CPUs, 1 GPUs",
                "There are no recognisers. `roomtone cluster up` on the first machine starts them.",
            ],
        ),
    ],
)
def test_the_state_reads_as_sentences(state: ClusterState, lines: list[str]) -> None:
    """The operator reads each machine, what hears, and what is wrong."""
    assert state.lines() == lines
