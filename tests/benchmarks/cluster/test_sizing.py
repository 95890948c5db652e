"""How many machines a number of rooms would need."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cluster.sizing import (
    BUSY_SHARE,
    CONNECTIONS_A_PROCESS,
    CONNECTIONS_FOR_SHARED_LOG,
    CORES_A_MACHINE,
    HEARD_TIMES,
    MEMORY_GB_A_MACHINE,
    MOST_LINKS,
    NOT_KEPT,
    ROOMS_BUSY_SHARE,
    SPARE_MACHINES,
    SPEECH_SHARE,
    THREADS,
    RoomCosts,
    connections_for,
    gateways_for,
    recognisers_for,
    room_machines_for,
    sizing_table,
)

if TYPE_CHECKING:
    from benchmarks.report import Json

KEPT: dict[str, Json] = {
    "ours": {
        "cluster": {"ready_s": 9.0, "memory_mb_a_recogniser": 200, "memory_mb_of_the_head": 500},
        "1 recogniser": {"recognisers_cpu_s_a_speech_s": 0.03, "whole_cluster_cpu_s_a_speech_s": 0.04},
        "2 recognisers": {"recognisers_cpu_s_a_speech_s": 0.04, "whole_cluster_cpu_s_a_speech_s": 0.05},
    }
}


def test_the_table_multiplies_the_kept_figures() -> None:
    """100 rooms, 0.5 s of speech a second, recognised 1.5 times at 0.05 s, half busy: 7.5 cores, so 4 recognisers."""
    lines = sizing_table(KEPT)
    assert lines[0].startswith("Calculated, not measured")
    assert "| 100 | 4 | 8 | 1 | 1.3 GB |" in lines
    assert "| 1,000 | 38 | 76 | 5 | 8.1 GB |" in lines
    assert "| 10,000 | 375 | 750 | 47 | 75.5 GB |" in lines


def test_rooms_in_processes_have_a_table_of_their_own() -> None:
    """Of the run with the most rooms: 450 MB, and 0.01 + 0.5 * 0.04 s a second, so 500 cores for 10,000 rooms at 60 %;
    memory decides, of which a process that waits takes some on each machine, and one machine more may fail.
    """
    small: dict[str, Json] = {
        "rooms_each": 1,
        "rooms": 2,
        "own_memory_mb_a_room": 500,
        "cpu_s_a_silent_s": 0.9,
        "cpu_s_a_speech_s": 0.9,
    }
    large: dict[str, Json] = {
        "rooms_each": 1,
        "rooms": 8,
        "own_memory_mb_a_room": 450,
        "cpu_s_a_silent_s": 0.01,
        "cpu_s_a_speech_s": 0.04,
    }
    ours = KEPT["ours"]
    assert isinstance(ours, dict)
    lines = sizing_table({"ours": {**ours, "2 rooms": small, "8 rooms": large}})
    assert len([line for line in lines if line.startswith("The rooms themselves")]) == 1
    [told] = [line for line in lines if line.startswith("With 1 in a process")]
    assert "a run of 8 rooms" in told
    assert "| 100 | 5 | 45.9 GB | 2 | 1 | 909 |" in lines
    assert "| 10,000 | 500 | 4,532.4 GB | 72 | 10 | 90,100 |" in lines
    assert "A gateway process has 1,000 rooms on other machines at most" in told


@given(st.integers(1, 100_000), st.floats(1, 2_000), st.floats(0.0001, 0.5), st.floats(0.0001, 0.5))
def test_the_machines_of_rooms_are_enough(rooms: int, own_mb: float, silent: float, speech: float) -> None:
    """Without the spare one they have the processors and the memory, and one fewer lacks one of them."""
    costs = RoomCosts(own_mb, silent, speech, each=1, measured=8)
    machines = room_machines_for(rooms, costs) - SPARE_MACHINES
    cores, memory_gb = rooms * costs.cpu_s / ROOMS_BUSY_SHARE, rooms * own_mb / 1_000
    # A process that waits takes as much as a room.
    for_rooms_gb = MEMORY_GB_A_MACHINE - own_mb / 1_000

    def carry(count: int, tolerance: float) -> bool:
        return count * CORES_A_MACHINE * tolerance >= cores and count * for_rooms_gb * tolerance >= memory_gb

    assert carry(machines, 1 + 1e-9)
    assert not carry(machines - 1, 1 - 1e-9)


@given(st.integers(1, 20_000), st.integers(1, 8))
def test_no_gateway_process_has_more_links_than_it_takes(rooms: int, each: int) -> None:
    """With the rooms spread over them; with one fewer, one of them would have too many."""
    processes, gateways = math.ceil(rooms / each), gateways_for(rooms, each)
    assert math.ceil(processes / gateways) * (each + 1) <= MOST_LINKS
    assert gateways == 1 or math.ceil(processes / (gateways - 1)) * (each + 1) > MOST_LINKS
    shared_log = 0 if gateways == 1 else gateways
    assert connections_for(rooms, each) == (processes + gateways) * CONNECTIONS_A_PROCESS + shared_log


def test_the_connections_are_those_of_the_guides() -> None:
    """The operator reads the same numbers there."""
    docs = Path(__file__).parents[3] / "docs"
    assert "A process keeps up to nine connections (ten where" in (docs / "postgresql.md").read_text("utf-8")
    assert "a process keeps up to ten\nconnections" in (docs / "sharding.md").read_text("utf-8")
    assert (CONNECTIONS_A_PROCESS, CONNECTIONS_A_PROCESS + CONNECTIONS_FOR_SHARED_LOG) == (9, 10)


@pytest.mark.parametrize("report", [{}, {"ours": {}}, {"ours": {"cluster": {"memory_mb_a_recogniser": 200}}}])
def test_without_figures_there_is_no_table(report: dict[str, Json]) -> None:
    """Nothing is calculated from what was not measured; the sentence names the command."""
    assert sizing_table(report) == [NOT_KEPT, ""]


@given(st.integers(1, 100_000), st.floats(0.001, 2))
def test_the_recognisers_have_the_time(rooms: int, cpu_s: float) -> None:
    """They can do the work in their share of the time, and one fewer could not."""
    work = rooms * SPEECH_SHARE * HEARD_TIMES * cpu_s
    recognisers = recognisers_for(rooms, cpu_s)
    assert recognisers * THREADS * BUSY_SHARE >= work * (1 - 1e-9)
    assert (recognisers - 1) * THREADS * BUSY_SHARE < work * (1 + 1e-9)
