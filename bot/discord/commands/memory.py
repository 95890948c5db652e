"""The slash commands with which members see and delete facts about themselves: /memory me and /memory forget.

Only the member who used the command sees the answer.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import discord
from discord import app_commands

from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from compaction.memory.people import PersonFact

# Discord's limit for one message, minus the last sentence.
_MOST_CHARS = 1_800
NOTHING = (
    "I keep nothing that you said of yourself. What was said here is remembered as part of its sessions: /my-data "
    "shows it, and /forget-me deletes it."
)


class PersonFacts(Protocol):
    """The store behind the commands; `bot.memory.people.PeopleBook` implements it."""

    async def facts_about(self, guild_id: int | None, person_id: str) -> Sequence[PersonFact]:
        """Return all facts about a person in a guild, history included. Raises `StoreError`."""

    async def forget(self, guild_id: int | None, person_id: str) -> int:
        """Delete all facts about a person in a guild and return how many. Raises `StoreError`."""


def add_memory_commands(tree: app_commands.CommandTree[Any], *, people: PersonFacts, zone: tzinfo) -> None:
    """Put /memory on `tree`. `zone`: the time zone of the dates shown."""
    group: app_commands.Group = app_commands.Group(
        name="memory", description="What I remember of you, and forgetting it.", guild_only=True
    )

    @group.command(name="me", description="See what I keep about you on this server.")
    async def me(interaction: discord.Interaction) -> None:
        await _answer(interaction, await format_facts(people, interaction.guild_id, str(interaction.user.id), zone))

    @group.command(name="forget", description="Delete what I keep about you on this server.")
    async def forget(interaction: discord.Interaction) -> None:
        await _answer(interaction, await delete_facts(people, interaction.guild_id, str(interaction.user.id)))

    tree.add_command(group)


async def format_facts(people: PersonFacts, guild_id: int | None, person_id: str, zone: tzinfo) -> str:
    """Return the facts about a person with their dates, as one message."""
    try:
        facts = await people.facts_about(guild_id, person_id)
    except StoreError as error:
        return f"I cannot look that up now. {error}"
    holding = [_line(fact, zone) for fact in facts if fact.is_current]
    former = [_line(fact, zone) for fact in facts if not fact.is_current]
    if not holding and not former:
        return NOTHING
    lines = ["What you have said of yourself on this server:", *holding] if holding else []
    if former:
        lines += ["No longer so, as far as I know:", *former]
    return _within(
        "\n".join(lines), "\nThere is more. /memory forget deletes all of it.", "\n/memory forget deletes it."
    )


async def delete_facts(people: PersonFacts, guild_id: int | None, person_id: str) -> str:
    try:
        count = await people.forget(guild_id, person_id)
    except StoreError as error:
        return f"I could not delete it now. {error} Try again in a moment."
    if not count:
        return NOTHING
    what = "the one thing" if count == 1 else f"all {count} things"
    return (
        f"Done: I have deleted {what} that you had said of yourself on this server. What was said in a session stays "
        "in its record; /forget-me deletes that too."
    )


def _line(fact: PersonFact, zone: tzinfo) -> str:
    at = datetime.fromtimestamp(fact.at, zone)
    return f"- {discord.utils.escape_markdown(fact.text)} ({at.day} {at:%B %Y})"


def _within(text: str, more: str, end: str) -> str:
    if len(text) <= _MOST_CHARS:
        return text + end
    return text[:_MOST_CHARS].rpartition("\n")[0] + more


async def _answer(interaction: discord.Interaction, sentence: str) -> None:
    await interaction.response.send_message(sentence, ephemeral=True, allowed_mentions=discord.AllowedMentions.none())
