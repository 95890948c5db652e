"""The slash commands with which members see and delete facts about themselves: /memory me and /memory forget.

Only the member who used the command sees the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import discord
from discord import app_commands

from bot.channel.markdown import escape_markdown
from bot.discord.answers import answer_when_known
from bot.discord.commands.store_failures import not_looked_up
from bot.texts.text import Text, counted, joined, sentence_of, verbatim
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.memory.people import PersonFact

# Discord's limit for one message, minus the last sentence.
_MOST_CHARS = 1_800
NOTHING = Text(
    "I keep nothing that you said of yourself. What was said here is remembered as part of its sessions: /my-data "
    "shows it, and /forget-me deletes it."
)


class PersonFacts(Protocol):
    """The store behind the commands; `bot.memory.people.PeopleBook` implements it."""

    async def facts_about(self, guild_id: int | None, person_id: str) -> Sequence[PersonFact]:
        """Return all facts about a person in a guild, history included. Raises `StoreError`."""

    async def forget(self, guild_id: int | None, person_id: str) -> int:
        """Delete all facts about a person in a guild and return how many. Raises `StoreError`."""


def add_memory_commands(tree: app_commands.CommandTree[Any], *, people: PersonFacts) -> None:
    """Put /memory on `tree`."""
    group: app_commands.Group = app_commands.Group(
        name="memory", description="What I remember of you, and forgetting it.", guild_only=True
    )

    @group.command(name="me", description="See what you told about yourself on this server.")
    async def me(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, format_facts(people, interaction.guild_id, str(interaction.user.id)))

    @group.command(name="forget", description="Delete what you told about yourself on this server; the rest stays.")
    async def forget(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, delete_facts(people, interaction.guild_id, str(interaction.user.id)))

    tree.add_command(group)


async def format_facts(people: PersonFacts, guild_id: int | None, person_id: str) -> Text:
    """Return the facts about a person with their dates, as one message."""
    try:
        facts = await people.facts_about(guild_id, person_id)
    except StoreError as error:
        return not_looked_up(error)
    holding = [_line(fact) for fact in facts if fact.is_current]
    former = [_line(fact) for fact in facts if not fact.is_current]
    if not holding and not former:
        return NOTHING
    lines = [Text("What you have said of yourself on this server:"), *holding] if holding else []
    if former:
        lines += [Text("No longer so, as far as I know:"), *former]
    return _within(lines)


async def delete_facts(people: PersonFacts, guild_id: int | None, person_id: str) -> Text:
    try:
        count = await people.forget(guild_id, person_id)
    except StoreError as error:
        return Text("I could not delete it now. {error} Try again in a moment.", error=sentence_of(error))
    if not count:
        return NOTHING
    return counted(
        count,
        "Done: I have deleted the one thing that you had said of yourself on this server. What was said in a session "
        "stays in its record; /forget-me deletes that too.",
        "Done: I have deleted all {count} things that you had said of yourself on this server. What was said in a "
        "session stays in its record; /forget-me deletes that too.",
    )


def _line(fact: PersonFact) -> Text:
    # Discord writes the date as the reader's own Discord does.
    return verbatim(f"- {escape_markdown(fact.text)} (<t:{fact.at:.0f}:D>)")


def _within(lines: Sequence[Text]) -> Text:
    """Return the lines that fit one message, and how to delete them."""
    kept: list[Text] = []
    for line in lines:
        if sum(map(len, kept)) + len(kept) + len(line) > _MOST_CHARS:
            return joined((*kept, Text("There is more. /memory forget deletes all of it.")), "\n")
        kept.append(line)
    return joined((*kept, Text("/memory forget deletes it.")), "\n")
