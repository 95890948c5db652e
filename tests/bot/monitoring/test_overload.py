"""Too much to do is a fault before people notice, and one busy moment is none."""

from __future__ import annotations

import pytest

from bot.monitoring.overload import BUSY_LOOKS, LATE_S, LOOKS, OVERLOADED, WAITED_S, Overload

CALM, LAGS = (0.0, ()), (LATE_S, ())
# Somebody's sentence may wait behind others; it counts where most do.
WAITS, ONE_WAITS = (0.0, (WAITED_S, WAITED_S)), (0.0, (0.1, 0.1, 9.0))


@pytest.mark.parametrize(
    ("looks", "is_overloaded"),
    [
        ([LAGS] * (BUSY_LOOKS - 1), False),
        ([LAGS, CALM, WAITS, CALM, LAGS], True),
        ([ONE_WAITS] * LOOKS, False),
        ([LAGS, *[CALM] * LOOKS] * BUSY_LOOKS, False),
        ([*[WAITS] * BUSY_LOOKS, *[CALM] * (LOOKS - 1)], True),
        ([*[WAITS] * BUSY_LOOKS, *[CALM] * LOOKS], False),
        ([*[WAITS] * BUSY_LOOKS, *[CALM] * LOOKS, LAGS], False),
    ],
)
def test_overload_lasts_from_the_third_busy_look_until_a_calm_minute(
    looks: list[tuple[float, tuple[float, ...]]], is_overloaded: bool
) -> None:
    """`looks`: how late the loop was, and how long the utterances since the last look had waited."""
    overload = Overload()
    for lag_s, waits in looks:
        for waited_s in waits:
            overload.on_waited(waited_s)
        overload.on_lag(lag_s)
    assert overload.faults() == [OVERLOADED] * is_overloaded
