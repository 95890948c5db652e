"""The slash command /recap: what a session was about, or what somebody missed, for the person who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import discord
from discord import app_commands

from bot.discord.answers import answer, defer, language_of
from bot.discord.audience import channel_name
from bot.discord.commands.store_failures import not_read
from bot.discord.digest_embed import RECAP, digest_embed
from bot.discord.session_choice import NO_SESSION, chosen_session, session_choices
from bot.texts.text import Text, verbatim
from compaction.errors import StoreError

if TYPE_CHECKING:
    from datetime import tzinfo

    from bot.discord.command_tree import CheckedCommandTree
    from bot.discord.commands.catch_up import CatchUp
    from bot.memory.digests import Digests
    from bot.memory.session_reader import SessionReader
    from bot.readers import Reader

MOST_MINUTES = 720
NOTHING_TO_TELL = Text("Nothing was said in that session that I may tell.")


def add_recap(
    tree: CheckedCommandTree, *, reader: SessionReader, digests: Digests, catch_up: CatchUp, zone: tzinfo
) -> None:
    """Put /recap on `tree`. `zone`: the time zone of the sessions' names."""

    @tree.command(name="recap", description="See what a session was about: topics, decisions, open questions, people.")
    @app_commands.describe(
        what="session: what it was about. missed: what was said while you were away.",
        session="Which session; without, the newest one, here if possible.",
        minutes="What was said in the last so many minutes instead.",
    )
    @app_commands.guild_only()
    async def recap(
        interaction: discord.Interaction,
        what: Literal["session", "missed"] = "session",
        session: str | None = None,
        minutes: app_commands.Range[int, 1, MOST_MINUTES] | None = None,
    ) -> None:
        if what == "missed" or minutes is not None:
            await catch_up.show(interaction, tree.reader_of(interaction), minutes)
            return
        # A model may be asked for it.
        await defer(interaction)
        person = tree.reader_of(interaction)
        sentence, embed = await recap_for(interaction, session, person, reader=reader, digests=digests)
        await answer(interaction, sentence, embed=discord.utils.MISSING if embed is None else embed)

    @recap.autocomplete("session")
    async def sessions(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        return await session_choices(interaction, typed, tree.reader_of(interaction), reader=reader, zone=zone)


async def recap_for(
    interaction: discord.Interaction, session: str | None, person: Reader, *, reader: SessionReader, digests: Digests
) -> tuple[Text, discord.Embed | None]:
    """Return the sentence for the person and the embed; one of them is empty."""
    try:
        found = await chosen_session(interaction, session, person, reader=reader)
        if found is None:
            return NO_SESSION, None
        digest = await digests.of(found, person)
    except StoreError as error:
        return not_read(error), None
    if digest.is_empty:
        return NOTHING_TO_TELL, None
    title = RECAP.fill(channel=channel_name(interaction, found.channel_id))
    # Without a model there is nothing else of what was said.
    return verbatim(""), digest_embed(digest, language_of(interaction), title=title, shows_last=digest.is_certain)
