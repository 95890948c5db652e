"""/persona against the local Discord: everybody may read it, moderators may change it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from bot.discord.commands.persona import add_persona, format_persona
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


def online(choices: GuildChoices) -> AbstractAsyncContextManager[LocalDiscord]:
    """Start a local Discord with the command."""
    return server_with(partial(add_persona, choices=choices))


async def say(local: LocalDiscord, user_id: int, **options: str) -> str:
    """Use the command, and return the answer that only this person sees."""
    return await answer_to(local, user_id, "persona", **options)


@pytest.mark.asyncio
async def test_a_moderator_sets_it_and_everybody_sees_it(tmp_path: Path) -> None:
    """A moderator can set the persona and reset it; every member can read it. The server's other choices stay."""
    async with open_database(tmp_path / "a.db") as database:
        guilds = GuildStore(database, FakeClock())
        async with online(guilds) as local:
            await guilds.choose(local.guild.id, lambda _: GuildChoice(mode=Mode.ROLLING), by=ADA)
            assert await say(local, BEN) == format_persona(None)
            changed = await say(local, ADA, text="You are a dry innkeeper.")
            assert "You are a dry innkeeper." in changed
            assert "next reply" in changed
            assert (await say(local, BEN, text="You are a cat.")).startswith("Only members who may manage the server")
            fresh = GuildStore(database, FakeClock())
            choice = await fresh.choice(local.guild.id)
            assert (choice.persona, choice.mode) == ("You are a dry innkeeper.", Mode.ROLLING)
            assert format_persona(None) in await say(local, ADA, text="Default")
            assert (await guilds.choice(local.guild.id)).persona is None


class Broken:
    """A store whose disk is full."""

    async def choice(self, guild_id: int) -> GuildChoice:
        """Fail."""
        raise StoreError("The disk is full. Make room.")

    async def choose(self, guild_id: int, change: Callable[[GuildChoice], GuildChoice], *, by: int) -> GuildChoice:
        """Fail."""
        raise StoreError("The disk is full. Make room.")


@pytest.mark.asyncio
async def test_what_cannot_be_stored_is_told() -> None:
    """If the persona cannot be stored, the answer contains the remedy."""
    async with online(Broken()) as local:
        assert "Make room" in await say(local, ADA, text="You are a cat.")
