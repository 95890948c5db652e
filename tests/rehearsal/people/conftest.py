"""Fixtures: a local Discord on 127.0.0.1, and a clip that is short enough to be played in real time."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehearsal.discord.guild.spec import GuildSpec, Member
from rehearsal.people.clip import Clip
from rehearsal.pytest_plugin import DiscordForTests
from tests.rehearsal.people.scene import NAMES, PeopleRoom
from tests.rehearsal.people.sounds import clip_of


@pytest.fixture
def local_guild() -> GuildSpec:
    """A guild with three members."""
    return GuildSpec(people=tuple(Member(user_id, name) for user_id, name in NAMES.items()))


@pytest.fixture
def room(local_discord: DiscordForTests) -> PeopleRoom:
    """The members' room."""
    return PeopleRoom(local_discord.discord)


@pytest.fixture
def clip(tmp_path: Path) -> Clip:
    """Return a clip with half a second of voice, and a tenth of a second of silence before and after."""
    return clip_of(tmp_path)
