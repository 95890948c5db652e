"""When a session ends by itself."""

from __future__ import annotations

import pytest

from bot.room.endings import ReachedLimit, SessionLimits
from bot.server_settings import ServerSettings

STARTED_AT = 1_700_000_000.0
EMPTY_S = 60.0
HOUR_S = 3_600.0


def limits() -> SessionLimits:
    """Return the limits of a session that began at `STARTED_AT`."""
    return SessionLimits(started_at=STARTED_AT, leave_when_empty_s=EMPTY_S)


@pytest.mark.parametrize(
    ("settings", "looks", "expected"),
    [
        (ServerSettings(), [(0, False), (59, False)], None),
        (ServerSettings(), [(0, False), (60, False)], "empty"),
        (ServerSettings(), [(0, True), (600, True)], None),
        (ServerSettings(), [(0, False), (30, True), (40, False), (99, False)], None),
        (ServerSettings(), [(0, False), (30, True), (40, False), (100, False)], "empty"),
        (ServerSettings(leave_when_empty_s=5.0), [(0, False), (5, False)], "empty"),
        (ServerSettings(leave_when_empty_s=600.0), [(0, False), (60, False)], None),
    ],
)
def test_an_empty_room_is_left_after_the_servers_time(
    settings: ServerSettings, looks: list[tuple[float, bool]], expected: str | None
) -> None:
    """The time counts from the first look at an empty room; somebody who comes back resets it. `looks`: seconds, and
    whether people are in the channel.
    """
    session = limits()
    reached = [
        session.check(settings, accompanied=accompanied, epoch=STARTED_AT + at, now=at) for at, accompanied in looks
    ]
    assert reached == [*(None for _ in looks[1:]), None if expected is None else ReachedLimit(expected)]


def test_the_length_of_a_session_is_that_of_all_its_rooms() -> None:
    """A room that resumes a session an hour after its start ends it with the first look, also with people in it."""
    settings = ServerSettings(longest_session_h=1)
    assert limits().check(settings, accompanied=True, epoch=STARTED_AT + HOUR_S - 1, now=0.0) is None
    reached = limits().check(settings, accompanied=True, epoch=STARTED_AT + HOUR_S, now=0.0)
    assert reached is not None
    assert reached.reason == "longest"
    assert limits().check(ServerSettings(), accompanied=True, epoch=STARTED_AT + 99 * HOUR_S, now=0.0) is None
