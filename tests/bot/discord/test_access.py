"""Whom commands are for: people of each kind inside and outside the channel; and how often one person may use one."""

from __future__ import annotations

from dataclasses import replace

import discord
import pytest
from discord.app_commands import Cooldown

from bot.discord.access import (
    MOST_KEPT,
    NO_ROLE,
    PEOPLE,
    RULES,
    CommandUser,
    Cooldowns,
    Rule,
    Who,
    channel_refusal,
    refusal,
)
from bot.texts.text import Text

# People of each kind, by their permissions on the whole server. Only those marked + have one of the roles that the
# server has chosen. The owner runs the bot, and has no permission on this server.
KINDS = {
    "member": discord.Permissions(view_channel=True, connect=True, speak=True, send_messages=True),
    "member+": discord.Permissions(view_channel=True, connect=True, speak=True, send_messages=True),
    "mutes": discord.Permissions(mute_members=True),
    "channels": discord.Permissions(manage_channels=True),
    "manages": discord.Permissions(manage_guild=True),
    "admin": discord.Permissions(administrator=True),
    "owner": discord.Permissions(view_channel=True, connect=True, speak=True, send_messages=True),
    # Whoever moderates does not manage the server.
    "bans": discord.Permissions(ban_members=True, manage_messages=True, manage_roles=True),
}
ANYBODY = frozenset(KINDS)
MANAGERS = frozenset({"manages", "admin", "owner"})

# Whom a command is for -> who may use it inside the bot's voice channel, and who outside of it.
WANTED: dict[Who, tuple[frozenset[str], frozenset[str]]] = {
    Who.EVERYBODY: (ANYBODY, ANYBODY),
    Who.PRESENT_OR_MANAGERS: (ANYBODY, MANAGERS),
    Who.PRESENT: (ANYBODY, frozenset()),
    Who.MANAGERS: (MANAGERS, MANAGERS),
}


def person(kind: str, *, inside: bool, bot_is_away: bool = False) -> CommandUser:
    """Return somebody of this kind, inside the bot's voice channel or outside of it."""
    return CommandUser(
        KINDS[kind],
        is_owner=kind == "owner",
        has_role=kind.endswith("+"),
        is_present=inside,
        bot_is_away=bot_is_away,
    )


@pytest.mark.parametrize("who", Who)
def test_people_of_each_kind_inside_and_outside_the_channel(who: Who) -> None:
    """What makes somebody a manager. Which command is for whom is in `test_three_sentences`."""
    for inside, wanted in zip((True, False), WANTED[who], strict=True):
        assert {kind for kind in KINDS if person(kind, inside=inside).is_one_of(who)} == wanted


def test_who_needs_a_role() -> None:
    """Everybody but managers, if any is named."""
    assert {kind for kind in KINDS if refusal("join", person(kind, inside=True)) is None} == MANAGERS | {"member+"}
    assert refusal("join", CommandUser(discord.Permissions.none(), has_role=True)) is None


def test_there_are_no_more_commands_than_people_can_find_their_way_in() -> None:
    """Groups count each of their commands."""
    assert len(RULES) <= 30


def test_where_the_bot_is_nowhere_the_command_says_so() -> None:
    """While the bot is in no voice channel, nobody is outside of its channel: the command itself answers that."""
    for name, rule in RULES.items():
        expected = NO_ROLE if rule.needs_role else None
        if rule.who is Who.MANAGERS:
            expected = Text("Only {who} can do that.", who=PEOPLE[rule.who])
        assert refusal(name, person("member", inside=False, bot_is_away=True)) == expected


def test_the_commands_of_a_group_share_one_default() -> None:
    """Discord keeps one default permission for a group, so its commands have the same."""
    groups: dict[str, set[int | None]] = {}
    for name, rule in RULES.items():
        groups.setdefault(name.split()[0], set()).add(None if rule.default is None else rule.default.value)
    assert all(len(defaults) == 1 for defaults in groups.values())
    assert Rule(Who.EVERYBODY).default is None


@pytest.mark.parametrize(
    ("channel_id", "chosen", "refused"),
    [(600, (), False), (600, (600,), False), (600, (602, 600), False), (602, (600,), True)],
)
def test_a_server_chooses_the_channels(channel_id: int, chosen: tuple[int, ...], refused: bool) -> None:
    """If the server has chosen channels, the bot comes into no other."""
    assert (channel_refusal(channel_id, "Lounge", chosen) is not None) == refused


# What ends a reply, searches or asks a model, or writes into the database, if a member may use it from elsewhere.
COSTLY = {
    "join", "talk", "opt-in", "my-data", "forget-me", "recall", "recap", "transcript",
}  # fmt: skip


@pytest.mark.parametrize("command", sorted(COSTLY))
def test_who_is_nowhere_near_may_not_do_it_without_a_limit(command: str) -> None:
    """Also while the bot is in no channel. Opting out has no limit."""
    elsewhere = CommandUser(KINDS["member+"], has_role=True, bot_is_away=True)
    assert refusal(command, elsewhere) is None
    assert RULES[command].cooldown is not None


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
    once = Cooldown(1, 60.0)
    for person in range(MOST_KEPT + 1):
        used.use(1, person, "join", once, now=1.0)
    assert [used.use(1, person, "join", once, now=1.0) for person in (MOST_KEPT, 0)] == [60, 0]


def test_who_is_not_served_has_their_own_words_only() -> None:
    """They can leave, and see and delete what is kept of them; being a manager changes nothing."""
    for kind in KINDS:
        user = replace(person(kind, inside=True), is_refused=True)
        allowed = {name for name in RULES if refusal(name, user) is None}
        assert allowed == {"opt-out", "opt-in", "privacy", "my-data", "forget-me", "reminders"}
