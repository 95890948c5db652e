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

from bot.background_task import owned_task
from bot.channel.markdown import in_message
from bot.discord.request_errors import REQUEST_ERRORS
from bot.texts.catalogue import catalogue
from bot.texts.text import Text, verbatim

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

log = structlog.get_logger()

# Discord waits so long for the first response; finding out who may use the command (`bot.discord.admission`) takes some
# of it, and the way there half a second.
RESPONSE_S = 3.0
DEFER_AFTER_S = 1.0
_WAY_S = 0.5
# Discord's error codes: "Interaction has already been acknowledged", and "Unknown Webhook", "Unknown interaction" and
# "Invalid Webhook Token", which come after three seconds and after a quarter of an hour.
_ACKNOWLEDGED_ALREADY = 40060
_OVER = frozenset({10015, 10062, 50027})
# The mark of an interaction for which a deferral was tried, or a first answer taken: whether Discord has acknowledged
# it though it told of an error, so that discord.py does not know.
_TAKEN = "taken"
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


def guild_id_of(interaction: discord.Interaction) -> int:
    """Return the server in which a command was used. Only for commands marked `guild_only`."""
    assert interaction.guild_id is not None, "guild_only"
    return interaction.guild_id


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
    sentence, *others = message_parts(in_message(text, language_of(interaction)))
    nobody = discord.AllowedMentions.none()
    how: dict[str, Any] = {
        "ephemeral": True,
        "embed": embed,
        "file": file,
        "view": view,
        # A link must not unfold, and that would hide the embed too.
        "suppress_embeds": embed is discord.utils.MISSING,
        "allowed_mentions": nobody,
    }
    if interaction.response.is_done() or interaction.extras.get(_TAKEN):
        await interaction.followup.send(sentence, **how)
    else:
        try:
            await interaction.response.send_message(sentence, **how)
        except discord.HTTPException as error:
            if error.code != _ACKNOWLEDGED_ALREADY:
                raise
            # What Discord has taken is this sentence, unless it had been told before to wait for it.
            was_deferred = _TAKEN in interaction.extras
            interaction.extras[_TAKEN] = True
            if was_deferred:
                if file is not discord.utils.MISSING:
                    # The request that was refused has read it to its end.
                    file.reset()
                await interaction.followup.send(sentence, **how)
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
    async with owned_task(work, name="command-work") as working:
        age_s = (discord.utils.utcnow() - interaction.created_at).total_seconds()
        done, _ = await asyncio.wait({working}, timeout=patience_s(age_s))
        if not done:
            await defer(interaction)
        known = await working
    await show(interaction, known)


async def show(interaction: discord.Interaction, known: Text | discord.Embed) -> None:
    """Answer a command with a text or an embed."""
    if isinstance(known, discord.Embed):
        await answer(interaction, verbatim(""), embed=known)
    else:
        await answer(interaction, known)


def patience_s(age_s: float) -> float:
    """Return how long the work may take before Discord is told, for a command that is `age_s` old: one that came late
    leaves less. With a machine's clock that is ahead, Discord is told at once.
    """
    return min(DEFER_AFTER_S, max(0.0, RESPONSE_S - _WAY_S - age_s))


async def defer(interaction: discord.Interaction, *, in_place: bool = False) -> None:
    """Say that the answer comes later; `in_place`: as a change of the message whose button was pressed.

    What somebody wants is done all the same if Discord does not take that.
    """
    interaction.extras[_TAKEN] = False
    try:
        async with asyncio.timeout(RESPONSE_S):
            if in_place:
                await interaction.response.defer()
            else:
                await interaction.response.defer(ephemeral=True, thinking=True)
    except REQUEST_ERRORS as error:
        # discord.py asks again after an error of Discord's servers, and Discord may have taken the first request.
        taken = isinstance(error, discord.HTTPException) and error.code == _ACKNOWLEDGED_ALREADY
        interaction.extras[_TAKEN] = taken
        if not taken:
            log.warning("command_not_deferred", error_class=type(error).__name__)


def is_over(error: BaseException) -> bool:
    """Return whether a request failed because Discord takes no answer to this command or button any more."""
    return isinstance(error, discord.HTTPException) and error.code in _OVER


class Field(NamedTuple):
    """One field of an embed."""

    name: Text
    text: Text
    inline: bool = False


def embed_in(language: str, *, title: Text, text: Text | None = None, fields: Sequence[Field] = ()) -> discord.Embed:
    """Return an embed in a language. Each part is cut to Discord's limit; more than 25 fields are left out."""
    described = None if text is None else in_message(text, language)[:_TEXT_CHARS]
    embed = discord.Embed(title=in_message(title, language)[:_TITLE_CHARS], description=described)
    for each in fields[:_MOST_FIELDS]:
        name, value = in_message(each.name, language), in_message(each.text, language)
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
