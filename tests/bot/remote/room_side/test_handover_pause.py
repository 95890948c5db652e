"""When silence is enough to hand a room over."""

from __future__ import annotations

import pytest

from bot.remote.room_side.handover_pause import PATIENCE_S, PAUSE_S, WITHIN_S, is_short_pause

HALF_S = PATIENCE_S + (WITHIN_S - PATIENCE_S) / 2


@pytest.mark.parametrize(
    ("quiet_s", "waited_s", "is_enough"),
    [
        # At first only a real pause counts, however long nobody is heard: a question may just have been asked.
        (60.0, 0.0, False),
        (60.0, PATIENCE_S - 0.1, False),
        (PAUSE_S, PATIENCE_S, True),
        (PAUSE_S - 0.1, PATIENCE_S, False),
        # Half of the time has passed: half the silence.
        (PAUSE_S / 2, HALF_S, True),
        (PAUSE_S / 2 - 0.1, HALF_S, False),
        # At the end anything is.
        (0.0, WITHIN_S, True),
    ],
)
def test_the_longer_a_room_waits_the_less_silence_is_enough(quiet_s: float, waited_s: float, is_enough: bool) -> None:
    """Where people hardly pause, the end of a sentence is better than the middle of one."""
    assert is_short_pause(quiet_s, waited_s=waited_s) is is_enough
