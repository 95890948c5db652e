"""/rolling-context: the memory mode of a server's sessions, and whether every model call is kept within its token
limit.

It takes effect with the next reply.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import structlog
from discord import app_commands

from bot.discord.answers import answer_when_known, guild_id_of
from bot.discord.commands.default_word import DEFAULT
from bot.discord.commands.store_failures import not_stored
from bot.texts.text import Text, joined
from compaction.errors import StoreError
from compaction.model import Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    import discord

    from bot.guild import GuildChoice, GuildChoices

log = structlog.get_logger()

_MODE_TEXTS = {
    Mode.SUMMARY: Text("summary: what leaves the last 50 turns is folded into a summary"),
    Mode.ROLLING: Text("rolling: when the model is full the oldest turns are dropped, and memory search finds them"),
    Mode.OFF: Text("off: I see the last 50 turns, and older ones only where memory search finds them"),
}


@dataclass(frozen=True, slots=True)
class MemoryDefaults:
    """Defaults for a guild that has chosen nothing. `searchable`: memory search exists (rolling needs it)."""

    mode: Mode
    budget_enabled: bool
    max_input_tokens: int
    searchable: bool


def add_rolling_context(
    tree: app_commands.CommandTree[Any], *, choices: GuildChoices, defaults: MemoryDefaults
) -> None:

    @tree.command(name="rolling-context", description="Show or set how I remember what no longer fits the model.")
    @app_commands.describe(
        mode="How a session remembers what has left its window; default leaves it to my settings.",
        budget="Whether every call is kept within the model's room; default leaves it to my settings.",
    )
    @app_commands.guild_only()
    async def rolling_context(
        interaction: discord.Interaction,
        mode: Literal["summary", "rolling", "off", "default"] | None = None,
        budget: Literal["on", "off", "default"] | None = None,
    ) -> None:
        change = None if mode is None and budget is None else partial(change_choice, mode=mode, budget=budget)
        told = _rolling_context(guild_id_of(interaction), change, choices, defaults, by=interaction.user.id)
        await answer_when_known(interaction, told)


async def _rolling_context(
    guild_id: int,
    change: Callable[[GuildChoice], GuildChoice] | None,
    choices: GuildChoices,
    defaults: MemoryDefaults,
    *,
    by: int,
) -> Text:
    """Make the change, if there is one; return the answer with the choice in force."""
    try:
        if change is None:
            return format_choice(await choices.choice(guild_id), defaults)
        after = await choices.choose(guild_id, change, by=by)
    except StoreError as error:
        return not_stored(error)
    log.info(
        "guild_memory_chosen",
        guild_id=guild_id,
        compaction_mode=None if after.mode is None else after.mode.value,
        budget_enabled=after.budget_enabled,
        user_id=by,
    )
    return joined((format_choice(after, defaults), Text("This takes effect at my next reply.")))


def change_choice(before: GuildChoice, *, mode: str | None, budget: str | None) -> GuildChoice:
    """Return the choice after a change. None keeps a value, `default` resets it."""
    after = before
    if mode is not None:
        after = replace(after, mode=None if mode == DEFAULT else Mode(mode))
    if budget is not None:
        after = replace(after, budget_enabled=None if budget == DEFAULT else budget == "on")
    return after


def format_choice(choice: GuildChoice, defaults: MemoryDefaults) -> Text:
    """Return the sentences that a member reads about the choice in force."""
    mode = defaults.mode if choice.mode is None else choice.mode
    sentences = [Text("Mode {mode} ({source}).", mode=_MODE_TEXTS[mode], source=_source(choice.mode))]
    if mode is Mode.ROLLING and not defaults.searchable:
        sentences.append(
            Text("There is no memory search to find dropped turns, so I work as in summary until there is.")
        )
    kept = defaults.budget_enabled if choice.budget_enabled is None else choice.budget_enabled
    source = _source(choice.budget_enabled)
    if kept:
        limit = defaults.max_input_tokens
        sentences.append(
            Text("Budget on: at most {limit} tokens go into a call ({source}).", limit=limit, source=source)
        )
    else:
        sentences.append(Text("Budget off: calls are sent as they are ({source}).", source=source))
    return joined(sentences)


def _source(chosen: object) -> Text:
    return Text("my settings") if chosen is None else Text("chosen here")
