"""Sizes are the kept figures, multiplied, and nothing is calculated from figures that are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.cluster.sizing import NOT_KEPT, ROOMS, bots, costs_of, recogniser_cores, sizing_table

if TYPE_CHECKING:
    from benchmarks.report import Json

OURS: dict[str, Json] = {
    "cluster": {"memory_mb_a_recogniser": 200, "memory_mb_of_the_head": 800},
    "1 recogniser": {"whole_cluster_cpu_s_a_speech_s": 0.04},
    "2 recognisers": {"whole_cluster_cpu_s_a_speech_s": 0.05},
    "a bot with 1 rooms": {"rooms": 1, "memory_mb": 500, "cpu_s_a_silent_s": 0.01, "cpu_s_a_speech_s": 0.02},
    "a bot with 6 rooms": {"rooms": 6, "memory_mb": 600, "cpu_s_a_silent_s": 0.02, "cpu_s_a_speech_s": 0.04},
}


def test_the_dearest_service_and_the_largest_bot_count() -> None:
    """A further room takes what six take more than one. The rest of a bot's memory is there once."""
    costs = costs_of({"ours": OURS})
    assert costs is not None
    assert (costs.heard_cpu_s, costs.first_mb, costs.room_mb) == (0.05, 500, 20)
    assert costs.room_cpu_s == pytest.approx(0.04)
    assert bots(100, costs) == 8
    assert recogniser_cores(100, costs) == 8


def test_the_table_has_a_row_for_each_number_of_rooms() -> None:
    """Lines of Markdown, with the assumptions before them."""
    lines = sizing_table({"ours": OURS})
    rows = [line for line in lines if line.startswith("| ") and "rooms" not in line]
    assert len(rows) == len(ROOMS)
    assert rows[0] == "| 100 | 8 | 8 | 1 | 7.4 GB | 72 |"
    assert lines[0].startswith("Calculated, not measured")


@pytest.mark.parametrize("missing", OURS)
def test_without_a_part_nothing_is_calculated(missing: str) -> None:
    """But of the two runs of the service, the other one is left."""
    report: dict[str, Json] = {"ours": {name: each for name, each in OURS.items() if name != missing}}
    assert (sizing_table(report) == [NOT_KEPT, ""]) is ("recogniser" not in missing)
