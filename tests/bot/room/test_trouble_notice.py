"""People are told that the bot is in trouble, and when that is over, without filling the chat."""

from __future__ import annotations

import pytest

from bot.room.room_status import TELL_AGAIN_AFTER_S, UNDERSTANDS_AGAIN, UNDERSTANDS_NOBODY, TroubleNotice

SOON, LATER = 5.0, TELL_AGAIN_AFTER_S


@pytest.mark.parametrize(
    ("happened", "told"),
    [
        ([(0.0, False)], [None]),
        ([(0.0, True), (SOON, True)], [UNDERSTANDS_NOBODY, None]),
        ([(0.0, True), (SOON, False), (6.0, False)], [UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN, None]),
        (
            [(0.0, True), (SOON, False), (10.0, True), (15.0, False)],
            [UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN, None, None],
        ),
        (
            [(0.0, True), (SOON, False), (10.0, True), (LATER, True), (LATER + 1, False)],
            [UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN, None, UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN],
        ),
    ],
)
def test_each_change_is_told_once(happened: list[tuple[float, bool]], told: list[str | None]) -> None:
    """A change is told at once, the same state never again, and trouble that returns soon only when it lasts."""
    notice = TroubleNotice(UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN)
    assert [notice.next(is_there=is_there, now=now) for now, is_there in happened] == told
