"""The memory of a room in another process, as the dashboard asks for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.dashboard.shown_memory import MOST_TURNS
from bot.remote.gateway_side.reported_memory import ReportedMemory
from bot.remote.messages.room_messages import MemoryLook
from compaction.model import Mode

LOOK = MemoryLook(
    mode=Mode.SUMMARY, total_turns=30, cursor=20, window_from=20, unfolded=10, summary=None, external_changes=0
)


def window_of(look: MemoryLook) -> tuple[int, list[int]]:
    """Return how many turns the window of this memory has, and the first and last of their numbers."""
    memory = ReportedMemory()
    memory.tell(look)
    window = memory.window
    return len(window), [window[0].seq, window[-1].seq] if window else []


def test_the_window_has_the_turns_that_the_room_tells() -> None:
    """They are numbered from the first one that is not summarised."""
    assert window_of(LOOK) == (10, [20, 29])
    assert window_of(replace(LOOK, unfolded=0)) == (0, [])


@pytest.mark.parametrize(("unfolded", "shown"), [(10**12, MOST_TURNS), (10**40, MOST_TURNS), (-1, 0)])
def test_a_number_that_no_room_has_takes_no_memory(unfolded: int, shown: int) -> None:
    """A list of 10^12 turns would end the gateway process, and with it every other room."""
    assert window_of(replace(LOOK, unfolded=unfolded))[0] == shown
