"""Answers people in their language: the replies to commands, embeds, and the names of the commands themselves.

The answer to a command is in the language of the person's Discord. What everybody in a channel reads is in the
server's (`bot.discord.place`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import discord
import structlog
from discord import app_commands

from bot.discord.request_errors import REQUEST_ERRORS
from bot.texts.catalogue import catalogue
from bot.texts.text import Text, in_language, verbatim

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

log = structlog.get_logger()

# Discord waits 3 s for the first response; finding out who may use the command (`bot.discord.admission`) and the way
# there take some of it.
DEFER_AFTER_S = 1.0
# Discord's limits.
MESSAGE_CHARS = 2_000
_TITLE_CHARS, _TEXT_CHARS, _FIELD_NAME_CHARS, _FIELD_CHARS, _MOST_FIELDS = 256, 4_096, 256, 1_024, 25

_NAMES = frozenset(
    {
        app_commands.TranslationContextLocation.command_name,
        app_commands.TranslationContextLocation.group_name,
        app_commands.TranslationContextLocation.parameter_name,
        app_commands.TranslationContextLocation.choice_name,
    }
)


def language_of(interaction: discord.Interaction) -> str:
    """Return the language of the person's Discord."""
    return interaction.locale.value


async def answer(
    interaction: discord.Interaction,
    text: Text,
    *,
    embed: discord.Embed = discord.utils.MISSING,
    file: discord.File = discord.utils.MISSING,
    view: discord.ui.View = discord.utils.MISSING,
) -> None:
    """Answer a command in the person's language, visible to them alone and pinging nobody.

    A text that is too long for one message goes on in others. After `interaction.response.defer` this is the follow-up.
    """
    sentence, *others = message_parts(in_language(text, language_of(interaction)))
    nobody = discord.AllowedMentions.none()
    # A link must not unfold, and that would hide the embed too.
    no_preview = embed is discord.utils.MISSING
    if interaction.response.is_done():
        await interaction.followup.send(
            sentence,
            ephemeral=True,
            embed=embed,
            file=file,
            view=view,
            suppress_embeds=no_preview,
            allowed_mentions=nobody,
        )
    else:
        await interaction.response.send_message(
            sentence,
            ephemeral=True,
            embed=embed,
            file=file,
            view=view,
            suppress_embeds=no_preview,
            allowed_mentions=nobody,
        )
    for part in others:
        await interaction.followup.send(part, ephemeral=True, suppress_embeds=True, allowed_mentions=nobody)


def message_parts(text: str, *, most_chars: int = MESSAGE_CHARS) -> list[str]:
    """Return a text as messages that Discord takes, cut at the ends of lines or words. A text that fits is one."""
    if len(text) <= most_chars:
        return [text]
    parts: list[str] = []
    rest = text.strip()
    while len(rest) > most_chars:
        # White space behind a part needs no room in it.
        window = rest[: most_chars + 1]
        end = max(window.rfind("\n"), 0) or max(window.rfind(" "), 0) or most_chars
        parts.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*parts, rest]


async def answer_when_known(interaction: discord.Interaction, work: Coroutine[Any, Any, Text | discord.Embed]) -> None:
    """Answer with what `work` returns. If that takes long, because the database or a room's process is busy, Discord is
    told in time that the answer comes later. *Cancellation*: cancels the work.
    """
    working = asyncio.create_task(work, name="command-work")
    try:
        done, _ = await asyncio.wait({working}, timeout=DEFER_AFTER_S)
        if not done:
            await _defer(interaction)
        known = await working
    except asyncio.CancelledError:
        working.cancel()
        raise
    if isinstance(known, discord.Embed):
        await answer(interaction, verbatim(""), embed=known)
    else:
        await answer(interaction, known)


async def _defer(interaction: discord.Interaction) -> None:
    """Say that the answer comes later. What somebody wants is done all the same if Discord does not take that."""
    try:
        await interaction.response.defer(ephemeral=True, thinking=True)
    except REQUEST_ERRORS as error:
        log.warning("command_not_deferred", error_class=type(error).__name__)


class Field(NamedTuple):
    """One field of an embed."""

    name: Text
    text: Text
    inline: bool = False


def embed_in(language: str, *, title: Text, text: Text | None = None, fields: Sequence[Field] = ()) -> discord.Embed:
    """Return an embed in a language. Each part is cut to Discord's limit; more than 25 fields are left out."""
    described = None if text is None else in_language(text, language)[:_TEXT_CHARS]
    embed = discord.Embed(title=in_language(title, language)[:_TITLE_CHARS], description=described)
    for each in fields[:_MOST_FIELDS]:
        name, value = in_language(each.name, language), in_language(each.text, language)
        embed.add_field(name=name[:_FIELD_NAME_CHARS], value=value[:_FIELD_CHARS] or "–", inline=each.inline)
    return embed


class CommandTranslator(app_commands.Translator):
    """Gives Discord the names and descriptions of the commands in all languages of the catalogue."""

    async def translate(
        self,
        string: app_commands.locale_str,
        locale: discord.Locale,
        context: app_commands.TranslationContext[Any, Any],
    ) -> str | None:
        """Return a name or a description in that locale; None if there is none."""
        known = catalogue(locale.value)
        return (known.commands if context.location in _NAMES else known.texts).get(string.message)
