"""When somebody was away, by when they were in the channel."""

from __future__ import annotations

import pytest

from bot.memory.digests import LEAST_AWAY_S, Absence, last_absence
from bot.readers import Stay


@pytest.mark.parametrize(
    ("stays", "away"),
    [
        ((), Absence(0.0)),
        ((Stay(1.0),), None),
        ((Stay(100.0),), Absence(0.0, 100.0)),
        ((Stay(1.0, 100.0),), Absence(100.0, None, left=True)),
        ((Stay(1.0, 100.0), Stay(900.0)), Absence(100.0, 900.0, left=True)),
        ((Stay(1.0, 100.0), Stay(900.0, 2_000.0)), Absence(2_000.0, None, left=True)),
        ((Stay(1.0, 100.0), Stay(900.0, 2_000.0), Stay(2_400.0)), Absence(2_000.0, 2_400.0, left=True)),
        # Unsteady connections.
        ((Stay(1.0, 100.0), Stay(100.0 + LEAST_AWAY_S / 2)), None),
        ((Stay(100.0, 110.0), Stay(112.0)), Absence(0.0, 100.0)),
        ((Stay(1.0, 100.0), Stay(110.0, 120.0), Stay(900.0)), Absence(120.0, 900.0, left=True)),
    ],
)
def test_the_last_absence(stays: tuple[Stay, ...], away: Absence | None) -> None:
    """Who came late was away before; who has left is away; otherwise it is the time from leaving to coming back."""
    assert last_absence(stays, 0.0) == away
