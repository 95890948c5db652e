"""When a share must end without its sharer's doing, and what waits for their page."""

from __future__ import annotations

import pytest

from bot.screen.messages import ShareEnd
from bot.screen.sharer import ABSENT_S, PAGE_MESSAGES, RECONNECT_WITHIN_S, Sharer
from tests.fakes.place import ADA

NOW = 100.0


@pytest.mark.parametrize(
    ("absent_s", "disconnected_s", "excluded", "ending"),
    [
        (None, None, False, None),
        (ABSENT_S - 0.1, None, False, None),
        (ABSENT_S, None, False, ShareEnd.LEFT),
        (None, RECONNECT_WITHIN_S - 0.1, False, None),
        (None, RECONNECT_WITHIN_S, False, ShareEnd.LOST),
        (ABSENT_S, RECONNECT_WITHIN_S, False, ShareEnd.LEFT),
        (ABSENT_S, RECONNECT_WITHIN_S, True, ShareEnd.OPTED_OUT),
        (None, None, True, ShareEnd.OPTED_OUT),
    ],
)
def test_end_of_a_share(
    absent_s: float | None, disconnected_s: float | None, excluded: bool, ending: ShareEnd | None
) -> None:
    """An opt-out comes before everything else, and leaving the channel before a broken connection."""
    sharer = Sharer(ADA, "n1")
    if absent_s is not None:
        assert sharer.due_end(NOW, present=False, excluded=False) is None
    if disconnected_s is not None:
        sharer.disconnected_since = NOW + (absent_s or 0.0) - disconnected_s
    assert sharer.due_end(NOW + (absent_s or 0.0), present=absent_s is None, excluded=excluded) is ending


def test_a_short_absence_is_forgotten() -> None:
    """Who is back in the channel may be away as long again."""
    sharer = Sharer(ADA, "n1")
    assert sharer.due_end(NOW, present=False, excluded=False) is None
    assert sharer.due_end(NOW + ABSENT_S - 1, present=True, excluded=False) is None
    assert sharer.due_end(NOW + ABSENT_S, present=False, excluded=False) is None
    assert sharer.due_end(NOW + 2 * ABSENT_S, present=False, excluded=False) is ShareEnd.LEFT


def test_oldest_messages_for_an_absent_page_are_dropped() -> None:
    sharer = Sharer(ADA, "n1")
    for number in range(PAGE_MESSAGES + 3):
        sharer.tell(t="note", what=number)
    assert [message["what"] for message in sharer.for_page] == list(range(3, PAGE_MESSAGES + 3))
    assert sharer.dropped == 3
    assert sharer.changed.is_set()
