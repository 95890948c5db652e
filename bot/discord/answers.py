"""Answers people in their language: the replies to commands, embeds, and the names of the commands themselves.

The answer to a command is in the language of the person's Discord. What everybody in a channel reads is in the
server's (`bot.discord.room_channel`). What people said is shown as it is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import discord
import structlog
from discord import app_commands

from bot.background_task import owned_task
from bot.channel.markdown import escape_markdown, in_message
from bot.discord.posting import MESSAGE_CHARS, REQUEST_ERRORS, message_parts
from bot.errors import BotError
from bot.participation.guild_state import NotStoredError
from bot.texts.text import Text, catalogue, counted, in_language, joined, sentence_of, verbatim
from bot.time_phrases import format_duration, format_minutes
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Iterable, Sequence

    from compaction.memory.digest import Digest, DigestLine, DigestPerson


log = structlog.get_logger()

# Discord waits so long for the first response; finding out who may use the command (`bot.discord.admission`) takes some
# of it, and the way there half a second.
RESPONSE_S = 3.0
DEFER_AFTER_S = 1.0
_WAY_S = 0.5
# Discord's error codes: "Interaction has already been acknowledged", and "Unknown Webhook", "Unknown interaction" and
# "Invalid Webhook Token", which come after three seconds and after a quarter of an hour.
_ACKNOWLEDGED_ALREADY = 40060
OVER = frozenset({10015, 10062, 50027})
# The mark of an interaction for which a deferral was tried, or a first answer taken: whether Discord has acknowledged
# it though it told of an error, so that discord.py does not know.
_TAKEN = "taken"
_NOBODY = discord.AllowedMentions.none()
NO_TEXT = verbatim("")
# Discord's limits.
_TITLE_CHARS, _TEXT_CHARS, _FIELD_NAME_CHARS, FIELD_CHARS, _MOST_FIELDS = 256, 4_096, 256, 1_024, 25
_CHOICE_CHARS, _MOST_CHOICES = 100, 25


def language_of(interaction: discord.Interaction) -> str:
    """Return the language of the person's Discord."""
    return interaction.locale.value


def guild_id_of(interaction: discord.Interaction) -> int:
    """Return the server in which a command was used. Only for commands marked `guild_only`."""
    assert interaction.guild_id is not None, "guild_only"
    return interaction.guild_id


class Answer(NamedTuple):
    """What somebody alone sees after a command or a press: a text, and what comes with it."""

    text: Text = NO_TEXT
    embed: discord.Embed | None = None
    view: discord.ui.View | None = None
    file: discord.File | None = None


async def answer(interaction: discord.Interaction, reply: Answer | Text) -> None:
    """Answer a command in the person's language, visible to them alone and pinging nobody.

    A text that is too long for one message goes on in others. After `interaction.response.defer` this is the follow-up.
    """
    text, embed, view, file = reply if isinstance(reply, Answer) else Answer(reply)
    sentence, *others = message_parts(in_message(text, language_of(interaction)))
    parts = {"embed": embed, "view": view, "file": file}
    # A link must not unfold, and that would hide the embed too.
    private = {"ephemeral": True, "suppress_embeds": embed is None, "allowed_mentions": _NOBODY}
    how: dict[str, Any] = {name: part for name, part in parts.items() if part is not None} | private
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
                if file is not None:
                    # The request that was refused has read it to its end.
                    file.reset()
                await interaction.followup.send(sentence, **how)
    for part in others:
        await interaction.followup.send(part, ephemeral=True, suppress_embeds=True, allowed_mentions=_NOBODY)


async def change(interaction: discord.Interaction, text: Text, **how: Any) -> None:
    """Write another text into the private answer. `how`: what else of it changes."""
    content = in_message(text, language_of(interaction))[:MESSAGE_CHARS]
    await interaction.edit_original_response(content=content, allowed_mentions=_NOBODY, **how)


async def answer_when_known(interaction: discord.Interaction, work: Coroutine[Any, Any, Answer | Text]) -> None:
    """Answer with what `work` returns, or why it failed. If that takes long, because the database, a model or a room's
    process is busy, Discord is told in time that the answer comes later. *Cancellation*: cancels the work.
    """
    async with owned_task(outcome(work), name="command-work") as working:
        age_s = (discord.utils.utcnow() - interaction.created_at).total_seconds()
        done, _ = await asyncio.wait({working}, timeout=patience_s(age_s))
        # A file may be longer on its way than Discord waits for the first answer.
        if not done or working.result().file is not None:
            await defer(interaction)
        known = await working
    await answer(interaction, known)


async def outcome(work: Awaitable[Answer | Text]) -> Answer:
    """Return what `work` returns, or why it failed."""
    try:
        known = await work
    except (BotError, StoreError) as error:
        known = failure_sentence(error)
    return known if isinstance(known, Answer) else Answer(known)


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


def embed_in(
    language: str, *, title: Text, text: Text | None = None, fields: Sequence[tuple[Text, Text]] = ()
) -> discord.Embed:
    """Return an embed in a language. `fields`: the name and the text of each. Each part is cut to Discord's limit; more
    than 25 fields are left out.
    """
    described = None if text is None else in_message(text, language)[:_TEXT_CHARS]
    embed = discord.Embed(title=in_message(title, language)[:_TITLE_CHARS], description=described)
    for field in fields[:_MOST_FIELDS]:
        name, value = (in_message(each, language) for each in field)
        embed.add_field(name=name[:_FIELD_NAME_CHARS], value=value[:FIELD_CHARS] or "–", inline=False)
    return embed


def choices(named: Iterable[tuple[str, str]], typed: str) -> list[app_commands.Choice[str]]:
    """Return the suggestions whose names contain what somebody has typed. `named`: the name and the value of each.
    Names are cut to Discord's limit; more than 25 are left out.
    """
    known = [app_commands.Choice(name=name[:_CHOICE_CHARS], value=value) for name, value in named]
    return [each for each in known if typed.strip().casefold() in each.name.casefold()][:_MOST_CHOICES]


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
        return (known.commands if context.location.name.endswith("_name") else known.texts).get(string.message)


def failure_sentence(error: Exception) -> Text:
    """Return what became of what somebody asked for, if it failed."""
    reason = sentence_of(error)
    match error:
        case NotStoredError():
            return Text(
                "I do this from now on, but I could not save it. If I have to start again, I forget "
                "it. Use the command again in a moment. {error}",
                error=reason,
            )
        case StoreError():
            return Text("I could not do that. {error} Try again in a moment.", error=reason)
        case _:
            return reason


# Discord allows 6,000 characters in an embed. What may be long of a digest is cut so.
_LINES_CHARS = 750
_NAMES_CHARS = 300


def digest_embed(digest: Digest, language: str, *, title: Text, shows_last: bool = False) -> discord.Embed:
    """Return the embed in a language. `shows_last`: with the last words. What has nothing by a model says how to
    search.
    """
    spoken = counted(
        digest.turn_count,
        "{start} to {end} ({duration}). People spoke {count} time.",
        "{start} to {end} ({duration}). People spoke {count} times.",
        # In figures: Discord names a month in the language of each reader's client, which may not be this one.
        start=verbatim(f"<t:{digest.started_at:.0f}:d> <t:{digest.started_at:.0f}:t>"),
        end=verbatim(f"<t:{digest.ended_at:.0f}:t>"),
        duration=format_duration(digest.ended_at - digest.started_at),
    )
    listed = (
        (Text("For you"), digest.yours),
        (Text("Decisions"), digest.decisions),
        (Text("To do"), digest.to_do),
        (Text("Open questions"), digest.open),
        (Text("What people talked about"), digest.about),
        (Text("Said last"), digest.last if shows_last else ()),
    )
    fields = [
        (name, verbatim(_lines(lines, digest.page, language, most_chars=_LINES_CHARS)))
        for name, lines in listed
        if lines
    ]
    if digest.people:
        fields.append((Text("Who was there, and how long they spoke"), verbatim(_names(digest.people))))
    how = Text("To find the exact words, use /recall.") if digest.is_certain else NO_TEXT
    text = joined((spoken, how), "\n")
    return embed_in(language, title=title, text=text, fields=fields)


def _lines(lines: Sequence[DigestLine], page: str, language: str, *, most_chars: int) -> str:
    """Return as many lines as fit, and how many more there are. `page`: of the session, to which each line leads."""
    kept: list[str] = []
    for line in lines:
        speaker = f"**{escape_markdown(line.speaker)}:** " if line.speaker else ""
        link = f" [↗]({page}/turn/{line.seq})" if page and line.seq is not None else ""
        written = f"- <t:{line.at:.0f}:t>{link} {speaker}{escape_markdown(line.text)}"
        left = most_chars - sum(_chars(each) + 1 for each in kept)
        if _chars(written) > left:
            more = counted(len(lines) - len(kept), "{count} more line.", "{count} more lines.")
            kept.append(f"- … {in_language(more, language)}")
            break
        kept.append(written)
    return "\n".join(kept)


def _chars(text: str) -> int:
    """Return the length of a text where an emoji counts as two, so that Discord takes it however it counts."""
    return len(text.encode("utf-16-le")) // 2


def _names(people: Sequence[DigestPerson]) -> str:
    """Return who was there, each with for how long they spoke."""
    kept: list[str] = []
    for person in people:
        spoken = f" ({format_minutes(person.spoken_s)})" if person.spoken_s else ""
        name = f"{escape_markdown(person.name)}{spoken}"
        if sum(_chars(each) + 2 for each in kept) + _chars(name) > _NAMES_CHARS:
            return f"{', '.join(kept)} … (+{len(people) - len(kept)})"
        kept.append(name)
    return ", ".join(kept)
