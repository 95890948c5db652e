"""How the cluster's state reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.cluster.state import (
    APP,
    DEPLOYMENT,
    ClusterState,
    NodeState,
    PoolState,
    hearing_by_machine,
    node_state,
)

MACHINE = NodeState("10.0.0.1", alive=True, cpus=4, gpus=1)


@pytest.mark.parametrize(
    ("state", "lines"),
    [
        (
            ClusterState((replace(MACHINE, recognisers=3),), PoolState("RUNNING", running=3, starting=0, problem="")),
            ["10.0.0.1: 4 CPUs, 1 GPU, recognisers that hear: 3", "Recognisers that hear: 3 (running)."],
        ),
        (
            ClusterState(
                (MACHINE, NodeState("10.0.0.2", alive=False, cpus=0, gpus=0)),
                PoolState("UNHEALTHY", running=1, starting=1, problem="No node has a free CPU."),
            ),
            [
                "10.0.0.1: 4 CPUs, 1 GPU, recognisers that hear: 0",
                "10.0.0.2: lost",
                "Recognisers that hear: 1, and 1 more start (unhealthy).",
                "No node has a free CPU.",
            ],
        ),
        (
            ClusterState((MACHINE,), None),
            [
                "10.0.0.1: 4 CPUs, 1 GPU, recognisers that hear: 0",
                "There are no recognisers. `roomtone cluster up` on the first machine starts them.",
            ],
        ),
    ],
)
def test_the_state_reads_as_sentences(state: ClusterState, lines: list[str]) -> None:
    """The operator reads each machine, what hears, and what is wrong."""
    assert state.lines() == lines


@pytest.mark.parametrize(
    ("alive", "drained", "reason", "line"),
    [
        (True, False, 0, "10.0.0.2: 8 CPUs, 0 GPUs, recognisers that hear: 0"),
        (
            True,
            True,
            0,
            "10.0.0.2: drained, so it gets no speech. `roomtone cluster down` there ends it.",
        ),
        (False, False, 3, "10.0.0.2: has left"),
        (False, False, 1, "10.0.0.2: has left"),
        (False, False, 2, "10.0.0.2: lost"),
    ],
)
def test_a_machine_that_was_drained_is_not_lost(alive: bool, drained: bool, reason: int, line: str) -> None:
    """Whoever drained a machine reads that it leaves and has left; one that failed is lost."""
    told = {
        "NodeID": "c0ffee",
        "NodeManagerAddress": "10.0.0.2",
        "Alive": alive,
        "DeathReason": reason,
        "Resources": {"CPU": 8.0, "node:10.0.0.2": 1.0},
    }
    assert node_state(told, drained=drained).line() == line


def test_the_first_machine_is_known() -> None:
    """Ray marks the head, and nothing else, by a resource of its own."""
    told = {"NodeID": "c0ffee", "NodeManagerAddress": "10.0.0.1", "Alive": True}
    assert node_state({**told, "Resources": {"node:__internal_head__": 1.0}}, drained=False).is_head
    assert not node_state({**told, "Resources": {"CPU": 4.0}}, drained=False).is_head


def test_recognisers_that_start_do_not_hear_yet() -> None:
    """The operator reads where speech is recognised now. A pool that nobody has started hears nowhere."""
    replicas = [
        {"node_id": "a", "state": "RUNNING"},
        {"node_id": "a", "state": "RUNNING"},
        {"node_id": "b", "state": "STARTING"},
        {"node_id": None, "state": "STARTING"},
    ]
    details = {"applications": {APP: {"deployments": {DEPLOYMENT: {"replicas": replicas}}}}}
    assert hearing_by_machine(details) == {"a": 2}
    assert hearing_by_machine({"applications": {}}) == {}
