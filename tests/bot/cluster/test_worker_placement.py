"""On which machine each new room worker comes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cluster.room_offer import RoomOffer
from bot.cluster.worker_placement import FreeMachine, machines_for

GB = 1_000_000_000
OFFER = RoomOffer("10.0.0.1:8572", 1)


def names(count: int) -> list[str]:
    """Return the names of so many workers, which were left behind nowhere."""
    return [str(number) for number in range(1, count + 1)]


def machine(name: str, *, cpus: float = 8, gb: float = 16, workers: int = 0, gpus: float = 0) -> FreeMachine:
    """Return a machine with so much free."""
    return FreeMachine(name, cpus, gpus, gb * GB, workers)


@pytest.mark.parametrize(
    ("count", "machines", "chosen"),
    [
        (3, [machine("a"), machine("b"), machine("c")], ["a", "b", "c"]),
        (3, [machine("a", workers=2), machine("b")], ["b", "b", "a"]),
        (2, [machine("a", gb=8), machine("b", gb=32)], ["b", "a"]),
        (2, [machine("a", cpus=1), machine("b", cpus=0.5)], ["a", None]),
        (1, [machine("a", gb=0.5), machine("b", workers=7)], ["b"]),
        (1, [], [None]),
        (0, [machine("a")], []),
    ],
)
def test_the_machine_with_the_fewest_workers_is_chosen(
    count: int, machines: list[FreeMachine], chosen: list[str | None]
) -> None:
    """Among equals the one with more memory; what is full, or has too little, gets none."""
    assert machines_for(names(count), machines, OFFER) == chosen


def test_a_worker_that_was_left_behind_comes_back_to_its_machine() -> None:
    """It has rooms there. Only the others are spread, and one whose machine has no room for it any more."""
    machines = [machine("a"), replace(machine("b", workers=2, cpus=1), left_behind=frozenset({"2", "3"}))]
    assert machines_for(["1", "2", "4"], machines, OFFER) == ["a", "b", "a"]
    assert machines_for(["2", "3"], machines, OFFER) == ["b", "a"]


def test_a_worker_that_reserves_a_gpu_comes_where_one_is_free() -> None:
    """The other machine has fewer workers, and no GPU."""
    offer = RoomOffer("10.0.0.1:8572", 1, gpus=0.5)
    assert machines_for(names(3), [machine("a"), machine("b", gpus=1, workers=3)], offer) == ["b", "b", None]


MACHINES = st.lists(
    st.builds(
        FreeMachine,
        st.uuids().map(str),
        st.floats(0, 8),
        st.floats(0, 2),
        st.floats(0, 8 * GB),
        st.integers(0, 3),
    ),
    max_size=5,
    unique_by=lambda each: each.node_id,
)


@given(machines=MACHINES, count=st.integers(0, 12))
def test_no_machine_gets_more_than_it_has_free(machines: list[FreeMachine], count: int) -> None:
    """And nobody waits while a machine has room. A machine that still has room has at most one worker more than any
    machine that got one.
    """
    chosen = machines_for(names(count), machines, OFFER)
    got = Counter(chosen)
    for each in machines:
        assert got[each.node_id] * OFFER.cpus <= each.cpus
        assert got[each.node_id] * OFFER.memory_bytes <= each.memory_bytes + 1
    after = {each.node_id: each for each in machines}
    for node_id in filter(None, chosen):
        after[node_id] = after[node_id].with_worker(OFFER)
    roomy = [each for each in after.values() if each.fits(OFFER)]
    assert len(chosen) == count
    assert not (roomy and None in chosen)
    most = max((after[node_id].workers for node_id in filter(None, chosen)), default=0)
    assert all(each.workers >= most - 1 for each in roomy)
