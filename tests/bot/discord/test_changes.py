"""Which of Discord's events change what a room knows of its channel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bot.discord.changes import Change, change_in

GUILD = SimpleNamespace(id=500)
CHANNEL = SimpleNamespace(id=600, guild=GUILD)
MEMBER = SimpleNamespace(id=1, guild=GUILD)
SIDE = SimpleNamespace(id=601, guild=GUILD)
HERE, MUTED, OTHER, GONE = (SimpleNamespace(channel=channel) for channel in (CHANNEL, CHANNEL, SIDE, None))


@pytest.mark.parametrize(
    ("event", "args", "change"),
    [
        ("voice_state_update", (MEMBER, GONE, HERE), Change(500, True, frozenset({600}))),
        ("voice_state_update", (MEMBER, HERE, GONE), Change(500, True, frozenset({600}))),
        ("voice_state_update", (MEMBER, HERE, MUTED), Change(500, False, frozenset({600}))),
        ("voice_state_update", (MEMBER, HERE, OTHER), Change(500, True, frozenset({600, 601}))),
        ("guild_channel_update", (CHANNEL, CHANNEL), Change(500, moves=False)),
        ("guild_role_delete", (SimpleNamespace(id=9, guild=GUILD),), Change(500, moves=False)),
        ("member_update", (MEMBER, MEMBER), Change(500, moves=False)),
        ("guild_available", (GUILD,), Change(500, moves=False)),
        ("scheduled_event_create", (SimpleNamespace(id=9, guild=GUILD),), Change(500, moves=False)),
        ("ready", (), Change(None, moves=False)),
        ("message", (SimpleNamespace(guild=GUILD),), None),
        ("interaction", (SimpleNamespace(guild=GUILD),), None),
    ],
)
def test_what_a_room_has_to_be_told(event: str, args: tuple[Any, ...], change: Change | None) -> None:
    """Who comes or goes is told at once, everything else soon, and chatter not at all."""
    assert change_in(event, args) == change
