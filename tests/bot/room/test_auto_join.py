"""When the bot comes by itself, and when it goes along."""

from __future__ import annotations

import pytest

from bot.room.auto_joiner import Arrival, BotStay, should_go
from bot.server_settings import FollowRule, ServerSettings

LOUNGE, SIDE, ADA, BEN = 600, 602, 1, 2
BY_NUMBER = ServerSettings(auto_join_channels=(LOUNGE,), auto_join_people=2)
WITH_ADA = ServerSettings(auto_join_with=(ADA,))


@pytest.mark.parametrize(
    ("rules", "arrival", "goes"),
    [
        (ServerSettings(), Arrival(ADA, LOUNGE, 9), False),
        (BY_NUMBER, Arrival(ADA, LOUNGE, 1), False),
        (BY_NUMBER, Arrival(BEN, LOUNGE, 2), True),
        (BY_NUMBER, Arrival(BEN, LOUNGE, 3), True),
        (BY_NUMBER, Arrival(BEN, SIDE, 3), False),
        (BY_NUMBER, Arrival(BEN, LOUNGE, 2, declined=True), False),
        (WITH_ADA, Arrival(ADA, SIDE, 1), True),
        (WITH_ADA, Arrival(BEN, SIDE, 5), False),
        (WITH_ADA, Arrival(ADA, SIDE, 1, declined=True), False),
    ],
)
def test_it_comes_by_the_servers_rules(rules: ServerSettings, arrival: Arrival, goes: bool) -> None:
    """With enough people in a chosen channel, or with a chosen person, unless it was sent away from there."""
    assert should_go(rules, arrival, None) is goes


@pytest.mark.parametrize(
    ("follow", "person", "came_from", "left", "goes"),
    [
        ("nobody", ADA, LOUNGE, 0, False),
        ("people", ADA, LOUNGE, 3, True),
        ("people", ADA, None, 0, False),
        ("people", ADA, 604, 0, False),
        ("people", BEN, LOUNGE, 0, False),
        ("everybody", BEN, LOUNGE, 1, False),
        ("everybody", BEN, LOUNGE, 0, True),
        ("everybody", BEN, 604, 0, False),
    ],
)
def test_it_follows_by_the_servers_rule(
    follow: FollowRule, person: int, came_from: int | None, left: int, goes: bool
) -> None:
    """Only from the channel that it is in: with the chosen people, or with the last one who goes."""
    rules = ServerSettings(follow=follow, auto_join_with=(ADA,), auto_join_channels=(SIDE,), auto_join_people=1)
    assert should_go(rules, Arrival(person, SIDE, 1, came_from), BotStay(LOUNGE, left)) is goes
    assert not should_go(rules, Arrival(person, LOUNGE, 1, came_from), BotStay(LOUNGE, left))
