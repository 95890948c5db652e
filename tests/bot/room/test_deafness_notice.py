"""People are told that they are not understood, and when they are again, without filling the chat."""

from __future__ import annotations

import pytest

from bot.room.deafness_notice import TELL_AGAIN_AFTER_S, UNDERSTANDS_AGAIN, UNDERSTANDS_NOBODY, DeafnessNotice

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
    """A change is told at once, the same state never again, and deafness that returns soon only when it lasts."""
    notice = DeafnessNotice()
    assert [notice.next(is_deaf=is_deaf, now=now) for now, is_deaf in happened] == told
