"""The slash commands for shared screens: /watch start, stop, stop-all, status and look.

Only the member who used the command sees the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import discord
from discord import app_commands

from bot.channel.markdown import escape_markdown
from bot.discord.answers import answer_when_known, guild_id_of, language_of
from bot.texts.text import Text, counted, in_language, joined, verbatim

if TYPE_CHECKING:
    from bot.web.watching import WatchService

# Discord's limit for one message, minus the text around it.
_MOST_CHARS = 1_800
LOCAL = Text(
    "This link works only on the computer that runs me. The owner of this bot can change this, with "
    "the setting PUBLIC_URL."
)


WHAT_IS_THERE = Text("What is on the screen?")


def add_watch_commands(tree: app_commands.CommandTree[Any], *, watching: WatchService) -> None:
    group: app_commands.Group = app_commands.Group(
        name="watch", description="Let me look at a screen together with you.", guild_only=True
    )

    @group.command(name="start", description="Get a link to show me your screen, a window or a tab.")
    async def start(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, _link(watching, interaction))

    @group.command(name="stop", description="Stop showing me your screen.")
    async def stop(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, _stop(watching, interaction, everybody=False))

    @group.command(name="stop-all", description="Stop all shared screens here.")
    async def stop_all(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, _stop(watching, interaction, everybody=True))

    @group.command(name="status", description="See who shows me a screen, and since when.")
    async def status(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, watching.status(guild_id_of(interaction)))

    @group.command(name="look", description="Ask me what is on a shared screen now.")
    @app_commands.describe(
        question="Your question. Without a question, I tell you what is on the screen.",
        whose="Whose screen you ask about.",
    )
    async def look(
        interaction: discord.Interaction, question: str | None = None, whose: discord.Member | None = None
    ) -> None:
        await answer_when_known(interaction, _look(watching, interaction, question, whose))

    tree.add_command(group)


async def _look(
    watching: WatchService, interaction: discord.Interaction, question: str | None, whose: discord.Member | None
) -> Text:
    language = language_of(interaction)
    # A vision model answers in the language of the question.
    asked = in_language(WHAT_IS_THERE, language) if question is None else question[:300]
    sharer = None if whose is None else whose.id
    reply = await watching.look(guild_id_of(interaction), interaction.user.id, asked, whose=sharer)
    return verbatim(escape_quote(in_language(reply, language)))


async def _link(watching: WatchService, interaction: discord.Interaction) -> Text:
    url = await watching.link(guild_id_of(interaction), interaction.user.id)
    minutes = max(1, round(watching.valid_s / 60))
    sentences = (
        Text("Open this link on your computer and choose what to share: {link}", link=verbatim(f"<{url}>")),
        counted(
            minutes,
            "The link is only for you, and works once. Open it within {count} minute. I make short "
            "notes of what I see. I never keep pictures.",
            "The link is only for you, and works once. Open it within {count} minutes. I make short "
            "notes of what I see. I never keep pictures.",
        ),
    )
    return joined((LOCAL, *sentences) if watching.is_local else sentences, "\n")


async def _stop(watching: WatchService, interaction: discord.Interaction, *, everybody: bool) -> Text:
    count = await watching.stop(guild_id_of(interaction), interaction.user.id, everybody=everybody)
    if not count:
        return Text("Nobody shares a screen now.") if everybody else Text("You do not share a screen with me.")
    return counted(count, "I no longer watch the screen.", "I no longer watch the {count} screens.")


def escape_quote(seen: str) -> str:
    """Return what is on a screen, line by line as it is there, cut to one message."""
    text = "\n".join(map(escape_markdown, seen.splitlines()))
    return text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS].rstrip("\\") + " …"
