"""When somebody was away, by when they were in the channel."""

from __future__ import annotations

import pytest

from bot.memory.digests import LEAST_AWAY_S, LONG_AWAY_S, Absence, last_absence
from bot.viewers import Stay


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
        ((Stay(1.0, 100.0), Stay(100.0 + LONG_AWAY_S / 2)), Absence(100.0, 100.0 + LONG_AWAY_S / 2, left=True)),
        ((Stay(LONG_AWAY_S / 2),), Absence(0.0, LONG_AWAY_S / 2)),
        ((Stay(LEAST_AWAY_S / 2),), None),
        # A client that starts anew after coming back hides no long absence.
        ((Stay(1.0, 100.0), Stay(3_700.0, 3_720.0), Stay(3_740.0)), Absence(100.0, 3_700.0, left=True)),
        ((Stay(100.0, 110.0), Stay(112.0)), Absence(0.0, 100.0)),
        ((Stay(1.0, 100.0), Stay(110.0, 120.0), Stay(900.0)), Absence(120.0, 900.0, left=True)),
    ],
)
def test_the_last_absence(stays: tuple[Stay, ...], away: Absence | None) -> None:
    """Who came late was away before; who has left is away; otherwise it is the time from leaving to coming back."""
    assert last_absence(stays, 0.0) == away


def test_the_end_of_a_session_is_nobodys_absence() -> None:
    """Everybody's stay ends with it. Who had left before has missed the rest."""
    missed = (Stay(1.0, 100.0), Stay(900.0, 2_001.0))
    assert last_absence(missed, 0.0, 2_000.0) == Absence(100.0, 900.0, left=True)
    assert last_absence((Stay(1.0, 2_001.0),), 0.0, 2_000.0) is None
    assert last_absence((Stay(1.0, 1_500.0),), 0.0, 2_000.0) == Absence(1_500.0, None, left=True)
