"""/rolling-context against the local Discord: every member may read the mode, and moderators may change it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from bot.discord.access import PEOPLE, Who
from bot.discord.commands.rolling_context import MemoryDefaults, add_rolling_context, change_choice, format_choice
from bot.guild import GuildChoice
from bot.store.database import open_database
from bot.store.guilds import GuildStore
from compaction.errors import StoreError
from compaction.model import Mode
from tests.bot.discord.commands.local_server import answer_to, server_with
from tests.bot.discord.test_client import ADA, BEN
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from bot.guild import GuildChoices
    from rehearsal.discord.server import LocalDiscord

DEFAULTS = MemoryDefaults(mode=Mode.SUMMARY, budget_enabled=True, max_input_tokens=28_672, searchable=True)


def online(choices: GuildChoices, defaults: MemoryDefaults = DEFAULTS) -> AbstractAsyncContextManager[LocalDiscord]:
    """Start a local Discord with the command."""
    return server_with(partial(add_rolling_context, choices=choices, defaults=defaults))


async def say(local: LocalDiscord, user_id: int, **options: str) -> str:
    """Use the command, and return the answer that only this person sees."""
    return await answer_to(local, user_id, "rolling-context", **options)


@pytest.mark.asyncio
async def test_a_moderator_chooses_and_everybody_sees_it(tmp_path: Path) -> None:
    """A moderator can set mode and budget for the guild and reset them to the settings; every member can read them."""
    async with open_database(tmp_path / "a.db") as database:
        guilds = GuildStore(database, FakeClock())
        async with online(guilds) as local:
            shown = await say(local, BEN)
            assert shown.startswith("Mode summary: ")
            assert shown.endswith("Budget on: at most 28,672 tokens go into a call (my settings).")
            changed = await say(local, ADA, mode="rolling", budget="off")
            assert changed.startswith("Mode rolling: ")
            assert "Budget off: calls are sent as they are (chosen here)." in changed
            assert changed.endswith("This takes effect at my next reply.")
            assert await guilds.choice(local.guild.id) == GuildChoice(Mode.ROLLING, False)
            assert (await say(local, BEN)).startswith("Mode rolling: ")
            await say(local, ADA, budget="default")
            assert await guilds.choice(local.guild.id) == GuildChoice(Mode.ROLLING)


@pytest.mark.asyncio
async def test_others_may_not_change_it(tmp_path: Path) -> None:
    """A member who may not manage the server cannot change the mode."""
    async with open_database(tmp_path / "a.db") as database:
        guilds = GuildStore(database, FakeClock())
        async with online(guilds) as local:
            answer = await say(local, BEN, mode="off")
            assert answer == f"Only {PEOPLE[Who.MANAGERS]} can do that."
            assert await guilds.choice(local.guild.id) == GuildChoice()


class BrokenChoices:
    """A store that always fails."""

    async def choice(self, guild_id: int) -> GuildChoice:
        """Fail."""
        raise StoreError("The disk is full. Make room.")

    async def choose(self, guild_id: int, change: Callable[[GuildChoice], GuildChoice], *, by: int) -> GuildChoice:
        """Fail."""
        raise StoreError("The disk is full. Make room.")


@pytest.mark.asyncio
async def test_a_store_that_fails_is_told() -> None:
    """A failure of the store is reported with its remedy."""
    async with online(BrokenChoices()) as local:
        assert await say(local, ADA) == "That could not be stored. The disk is full. Make room."


def test_a_change_leaves_the_rest() -> None:
    """A change affects only the options that are given; `default` resets an option to the settings."""
    before = GuildChoice(Mode.OFF, False)
    assert change_choice(before, mode="rolling", budget=None) == GuildChoice(Mode.ROLLING, False)
    assert change_choice(before, mode=None, budget="on") == GuildChoice(Mode.OFF, True)
    assert change_choice(before, mode="default", budget="default") == GuildChoice()


def test_rolling_without_search_says_what_happens() -> None:
    """If memory search is off, the answer about mode rolling says so."""
    defaults = MemoryDefaults(mode=Mode.OFF, budget_enabled=False, max_input_tokens=1_000, searchable=False)
    assert "no memory search" in format_choice(GuildChoice(Mode.ROLLING), defaults)
    assert "no memory search" not in format_choice(GuildChoice(), defaults)
    assert format_choice(GuildChoice(), defaults).startswith("Mode off: ")
