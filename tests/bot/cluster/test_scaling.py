"""How many recognisers are wanted for what the running ones report."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cluster.scaling import IDLE_SHARE, SLOW_WAIT_S, wanted_recognisers

CASES: list[tuple[str, list[float], list[float], int, int]] = [
    ("nobody speaks: the fewest", [0.0], [0.0], 1, 1),
    ("speech waits: one more", [0.5], [1.0], 1, 2),
    ("one of three is behind: one more", [0.0, 0.0, 0.9], [0.2, 0.2, 1.0], 3, 4),
    ("just not too long: no change", [SLOW_WAIT_S], [0.9], 1, 1),
    ("two do less than one's work: one fewer", [0.0, 0.0], [0.1, 0.2], 2, 1),
    ("two are half busy: no change", [0.0, 0.0], [0.5, 0.5], 2, 2),
    ("a new one has not reported yet: no change", [0.0], [0.0], 2, 2),
    ("nobody has reported: no change", [], [], 2, 2),
    ("behind at the limit: the limit", [3.0, 3.0, 3.0, 3.0], [1.0] * 4, 4, 4),
    ("more than allowed now: the limit", [0.0] * 6, [0.9] * 6, 6, 4),
]


@pytest.mark.parametrize(
    ("waits", "busy", "running", "wanted"), [each[1:] for each in CASES], ids=[c[0] for c in CASES]
)
def test_speech_that_waits_decides(waits: list[float], busy: list[float], running: int, wanted: int) -> None:
    """One recogniser more while finished speech waits too long, one fewer when they hardly work."""
    assert wanted_recognisers(waits, busy, running=running, least=1, most=4) == wanted


@given(
    st.lists(st.floats(0, 60), max_size=8), st.lists(st.floats(0, 1), max_size=8), st.integers(1, 8), st.integers(1, 4)
)
def test_it_stays_between_the_limits_and_goes_step_by_step(
    waits: list[float], busy: list[float], running: int, least: int
) -> None:
    """Whatever is reported, the pool keeps to its limits, and changes by one at most unless a limit asks for more."""
    wanted = wanted_recognisers(waits, busy, running=running, least=least, most=least + 3)
    assert least <= wanted <= least + 3
    if least <= running <= least + 3:
        assert abs(wanted - running) <= 1


@given(st.integers(2, 8), st.floats(0, 1))
def test_one_that_goes_does_not_bring_it_back(running: int, share: float) -> None:
    """After one recogniser went, the others are never so busy with its work that none is idle."""
    waits, busy = [0.0] * running, [share] * running
    if wanted_recognisers(waits, busy, running=running, least=1, most=8) < running:
        assert share * running / (running - 1) < 2 * IDLE_SHARE
