"""How many machines a number of rooms would need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cluster.sizing import (
    BUSY_SHARE,
    HEARD_TIMES,
    NOT_KEPT,
    SPEECH_SHARE,
    THREADS,
    recognisers_for,
    sizing_table,
)

if TYPE_CHECKING:
    from benchmarks.report import Json

KEPT: dict[str, Json] = {
    "ours": {
        "cluster": {"ready_s": 9.0, "memory_mb_a_recogniser": 200, "memory_mb_of_the_head": 500},
        "1 recogniser": {"recognisers_cpu_s_a_speech_s": 0.04},
        "2 recognisers": {"recognisers_cpu_s_a_speech_s": 0.05},
    }
}


def test_the_table_multiplies_the_kept_figures() -> None:
    """100 rooms, 0.5 s of speech a second, recognised 1.5 times at 0.05 s, half busy: 7.5 cores, so 4 recognisers."""
    lines = sizing_table(KEPT)
    assert lines[0].startswith("Calculated, not measured")
    assert "| 100 | 4 | 8 | 1 | 1.3 GB |" in lines
    assert "| 1,000 | 38 | 76 | 5 | 8.1 GB |" in lines
    assert "| 10,000 | 375 | 750 | 47 | 75.5 GB |" in lines


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
