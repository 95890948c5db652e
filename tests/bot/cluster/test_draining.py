"""Which machine may leave the cluster."""

from __future__ import annotations

import pytest

from bot.cluster import draining
from bot.cluster.address import ClusterError
from bot.cluster.draining import leaving_node
from bot.cluster.state import ClusterState, NodeState

HEAD = NodeState("10.0.0.1", alive=True, cpus=4, gpus=0, id="a", is_head=True)
OTHER = NodeState("10.0.0.2", alive=True, cpus=4, gpus=0, id="b")
LOST = NodeState("10.0.0.3", alive=False, cpus=0, gpus=0, id="c")
# The same machine, lost once and joined again.
LOST_BEFORE = NodeState("10.0.0.2", alive=False, cpus=0, gpus=0, id="d")


def test_another_machine_may_leave() -> None:
    """It is found by its address, also if it was lost and came back."""
    assert leaving_node([HEAD, LOST_BEFORE, OTHER], "10.0.0.2") is OTHER


@pytest.mark.parametrize(
    ("nodes", "ip", "sentence"),
    [
        ([HEAD, OTHER], "10.0.0.1", "first machine.*cluster down"),
        ([HEAD, OTHER, LOST], "10.0.0.3", r"no machine 10\.0\.0\.3\. It could leave: 10\.0\.0\.2\."),
        ([HEAD, OTHER], "gpu-box", "no machine gpu-box"),
        ([HEAD], "10.0.0.2", "no other machine than the first"),
    ],
)
def test_what_cannot_leave_is_told(nodes: list[NodeState], ip: str, sentence: str) -> None:
    """The first machine, a lost one and an unknown one are refused with what could be done instead."""
    with pytest.raises(ClusterError, match=sentence):
        leaving_node(nodes, ip)


@pytest.mark.asyncio
async def test_a_head_that_fails_meanwhile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Ray raises, the operator reads a sentence."""

    async def state() -> ClusterState:
        return ClusterState((HEAD, OTHER), pool=None)

    def lost(node_id: str, deadline_s: float) -> None:
        raise OSError

    monkeypatch.setattr(draining, "cluster_state", state)
    monkeypatch.setattr(draining, "_ask_ray", lost)
    with pytest.raises(ClusterError, match="head running"):
        await draining.drain("10.0.0.2")


@pytest.mark.asyncio
async def test_a_head_that_is_busy_for_a_moment_breaks_nothing_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recognisers are asked for again."""
    asked: list[str] = []

    async def state() -> ClusterState:
        return ClusterState((HEAD, OTHER), pool=None)

    async def on(node_id: str) -> int:
        asked.append(node_id)
        if len(asked) == 1:
            raise ClusterError("The cluster does not tell its state.")
        return 0

    monkeypatch.setattr(draining, "cluster_state", state)
    monkeypatch.setattr(draining, "_ask_ray", lambda *_: None)
    monkeypatch.setattr(draining, "_POLL_S", 0.0)
    monkeypatch.setattr(draining, "recognisers_on", on)
    assert await draining.drain("10.0.0.2")
    assert asked == ["b", "b"]
