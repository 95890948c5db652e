"""How often one person may use a command."""

from __future__ import annotations

from discord.app_commands import Cooldown

from bot.discord.access import MOST_KEPT, Cooldowns

TWICE_A_MINUTE = Cooldown(2, 60.0)


def test_a_command_can_be_used_so_often_and_then_again_later() -> None:
    """The time begins with the first use. A refused use makes nobody wait longer."""
    used = Cooldowns()
    times = [1.0, 10.0, 20.0, 60.5, 61.5, 62.0, 70.0]
    assert [used.use(1, 7, "join", TWICE_A_MINUTE, now=now) for now in times] == [0, 0, 41, 1, 0, 0, 52]


def test_people_servers_and_commands_are_counted_apart() -> None:
    """Nobody waits for what somebody else did, or for another command or server."""
    used = Cooldowns()
    once = Cooldown(1, 60.0)
    keys = [(1, 7, "join"), (2, 7, "join"), (1, 8, "join"), (1, 7, "listen")]
    assert [used.use(*key, once, now=1.0) for key in keys] == [0, 0, 0, 0]
    assert [used.use(*key, once, now=1.0) for key in keys] == [60, 60, 60, 60]


def test_no_number_of_people_fills_the_memory() -> None:
    """The longest unused are forgotten."""
    used = Cooldowns()
    for person in range(MOST_KEPT + 10):
        used.use(1, person, "join", TWICE_A_MINUTE, now=1.0)
    assert len(used._used) == MOST_KEPT
