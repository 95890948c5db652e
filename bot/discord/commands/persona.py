"""/persona: instructions for the bot on one server, in its managers' words. They are part of every prompt there.

They take effect with the next reply.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import discord
import structlog
from discord import app_commands

from bot.discord.answers import answer_when_known, guild_id_of, language_of
from bot.discord.commands.default_word import means_default
from bot.discord.commands.store_failures import not_stored
from bot.texts.text import Text, joined, verbatim
from compaction.errors import StoreError

if TYPE_CHECKING:
    from bot.guild import GuildChoices

log = structlog.get_logger()

# The persona costs tokens in every prompt of the server.
MOST_CHARS = 1_500


def add_persona(tree: app_commands.CommandTree[Any], *, choices: GuildChoices) -> None:

    @tree.command(name="persona", description="Show or set how I behave on this server, in your own words.")
    @app_commands.describe(text="For example: You are a dry old innkeeper. Say `default` to remove it.")
    @app_commands.guild_only()
    async def persona(
        interaction: discord.Interaction, text: app_commands.Range[str, 1, MOST_CHARS] | None = None
    ) -> None:
        wanted = None if text is None else text.strip()[:MOST_CHARS]
        if wanted is not None and means_default(wanted, language_of(interaction)):
            wanted = ""
        told = _persona(guild_id_of(interaction), wanted, choices, by=interaction.user.id)
        await answer_when_known(interaction, told)


async def _persona(guild_id: int, wanted: str | None, choices: GuildChoices, *, by: int) -> Text:
    """Set the persona if one is wanted, "" for none; return the answer with the one in force."""
    try:
        if wanted is None:
            return format_persona((await choices.choice(guild_id)).persona)
        after = await choices.choose(guild_id, lambda now: replace(now, persona=wanted or None), by=by)
    except StoreError as error:
        return not_stored(error)
    log.info("guild_persona_chosen", guild_id=guild_id, char_count=len(after.persona or ""), user_id=by)
    return joined((format_persona(after.persona), Text("This takes effect at my next reply.")), "\n")


def format_persona(persona: str | None) -> Text:
    """Return the sentences that a member reads about the persona in force."""
    if persona is None:
        return Text("I follow my default settings here. Whoever may manage the server can change that: /persona text.")
    return joined((Text("These are my instructions here:"), verbatim(persona)), "\n")
