"""What was said in a session, for the person who asks: /recap, /transcript, and the button *What did I miss?*"""

from __future__ import annotations

import asyncio
import io
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import discord
from discord import app_commands

from bot.discord.answers import RECAP, answer, defer, digest_embed, language_of, not_read, show
from bot.discord.command_tree import CheckedView
from bot.discord.voice_channels import channel_name, nearest_channels
from bot.memory.digests import Absence, last_absence
from bot.memory.transcript_files import TranscriptFormat, TranscriptHead, write_transcript
from bot.texts.text import Text, counted, in_language, joined, verbatim
from compaction.errors import StoreError
from compaction.model import SessionId

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import tzinfo

    from bot.discord.command_tree import CheckedCommandTree
    from bot.memory.digests import Digests
    from bot.memory.session_reader import SessionReader
    from bot.memory.transcript_files import TranscriptFile
    from bot.readers import Reader
    from bot.store.sessions import SessionBegin

    Choices = Callable[[discord.Interaction, str], Coroutine[Any, Any, list[app_commands.Choice[str]]]]

NEVER_AWAY = Text("You have been here all the time. With `minutes` you choose how far back I go.")
NOTHING_MISSED = Text("Nothing was said meanwhile that I may tell.")
MISSED = Text("What did I miss?")
TITLE = Text("While you were away from {channel}")
LATELY = Text("Lately in {channel}")
MOST_MINUTES = 720
NOTHING_TO_TELL = Text("Nothing was said in that session that I may tell.")
_FORMATS = {
    "markdown": TranscriptFormat.MARKDOWN,
    "json": TranscriptFormat.JSON,
    "srt": TranscriptFormat.SUBRIP,
    "webvtt": TranscriptFormat.WEBVTT,
}
NOTHING_SAID = Text("Nothing is kept that was said in that session and that I may show.")
# The same for a session that does not exist and for one that the person may not read.
NO_SESSION = Text(
    "I know of no such session that you may read: I show people what was said while they were in the channel. I tell "
    "of age-restricted channels only where you ask in one."
)
# Discord's limits for the name of a choice, and for the choices of an option.
_NAME_CHARS = 100
_MOST_CHOICES = 25


class CatchUp:
    """Tells people what they missed. `now`: UTC epoch seconds."""

    def __init__(self, reader: SessionReader, digests: Digests, *, now: Callable[[], float]) -> None:
        self._reader = reader
        self._digests = digests
        self._now = now

    async def show(self, interaction: discord.Interaction, person: Reader, minutes: int | None) -> None:
        """Answer with what was said in the last `minutes`, or while the person was away."""
        await defer(interaction)
        await show(interaction, await self._missed(interaction, person, minutes))

    async def _missed(
        self, interaction: discord.Interaction, person: Reader, minutes: int | None
    ) -> Text | discord.Embed:
        try:
            session = await self._reader.find(person, nearest=nearest_channels(interaction), catches_up=True)
            if session is None:
                return NO_SESSION
            away: Absence | None
            if minutes is not None:
                away = Absence(self._now() - 60 * minutes)
            else:
                away = last_absence(await self._reader.stays(session, person), session.started_at)
            # Who is there and was never seen to come or leave has been there since the bot came.
            never_seen = minutes is None and away is not None and away.until is None and not away.left
            if away is None or (never_seen and person.present_in == session.channel_id):
                return NEVER_AWAY
            until = float("inf") if away.until is None else away.until
            digest = await self._digests.of(session, person, since=away.since, until=until, catches_up=True)
        except StoreError as error:
            return not_read(error)
        if digest.is_empty:
            return NOTHING_MISSED
        channel = channel_name(interaction, session.channel_id)
        title = (TITLE if minutes is None else LATELY).fill(channel=channel)
        return digest_embed(digest, language_of(interaction), title=title, shows_last=True)


def catch_up_button(catch_up: CatchUp, tree: CheckedCommandTree, language: str) -> CheckedView:
    """Return the button below the offer. It does what /recap does with `missed`, for the same people."""

    async def missed(interaction: discord.Interaction) -> None:
        await catch_up.show(interaction, tree.reader_of(interaction), None)

    view = CheckedView(tree, "recap")
    view.add_button("roomtone:catch-up", in_language(MISSED, language), missed)
    return view


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
        chosen, person = None if session is None else SessionId(session), tree.reader_of(interaction)
        await show(interaction, await recap_for(interaction, chosen, person, reader, digests))

    recap.autocomplete("session")(session_choices(tree, reader=reader, zone=zone))


async def recap_for(
    interaction: discord.Interaction, session: SessionId | None, person: Reader, reader: SessionReader, digests: Digests
) -> Text | discord.Embed:
    try:
        found = await reader.find(person, session_id=session, nearest=nearest_channels(interaction))
        if found is None:
            return NO_SESSION
        digest = await digests.of(found, person)
    except StoreError as error:
        return not_read(error)
    if digest.is_empty:
        return NOTHING_TO_TELL
    title = RECAP.fill(channel=channel_name(interaction, found.channel_id))
    # Without a model there is nothing else of what was said.
    return digest_embed(digest, language_of(interaction), title=title, shows_last=digest.is_certain)


def add_transcript(tree: CheckedCommandTree, *, reader: SessionReader, zone: tzinfo) -> None:
    """Put /transcript on `tree`. `zone`: the time zone of times of day."""

    @tree.command(name="transcript", description="Get what was said in a session as a file that only you see.")
    @app_commands.rename(wanted="format")
    @app_commands.describe(
        wanted="Markdown to read, JSON for programs, SRT or WebVTT as subtitles of a recording.",
        session="Which session; without, the newest one, here if possible.",
    )
    @app_commands.guild_only()
    async def transcript(
        interaction: discord.Interaction,
        wanted: Literal["markdown", "json", "srt", "webvtt"] = "markdown",
        session: str | None = None,
    ) -> None:
        # Reading takes longer than Discord's 3 seconds.
        await defer(interaction)
        chosen, person = None if session is None else SessionId(session), tree.reader_of(interaction)
        sentence, file = await transcript_for(interaction, _FORMATS[wanted], chosen, person, reader=reader, zone=zone)
        content = discord.utils.MISSING if file is None else discord.File(io.BytesIO(file.content), file.name)
        await answer(interaction, sentence, file=content)

    transcript.autocomplete("session")(session_choices(tree, reader=reader, zone=zone))


async def transcript_for(
    interaction: discord.Interaction,
    wanted: TranscriptFormat,
    session: SessionId | None,
    person: Reader,
    *,
    reader: SessionReader,
    zone: tzinfo,
) -> tuple[Text, TranscriptFile | None]:
    """Return the sentence for the person and the file, if there is one."""
    try:
        found = await reader.find(person, session_id=session, nearest=nearest_channels(interaction))
        if found is None:
            return NO_SESSION, None
        read = await reader.read(found, person)
    except StoreError as error:
        return not_read(error), None
    if not read.turns:
        return NOTHING_SAID, None
    channel = channel_name(interaction, found.channel_id)
    head = TranscriptHead(
        session_id=found.id,
        server="" if interaction.guild is None else interaction.guild.name,
        channel=channel,
        started_at=found.started_at,
        ended_at=found.ended_at,
        missing=read.cut,
    )
    file = await asyncio.to_thread(write_transcript, read.turns, head, wanted, zone=zone)
    told = counted(
        file.lines,
        "The session in {channel} that began {when}: {count} line. Only you see this message.",
        "The session in {channel} that began {when}: {count} lines. Only you see this message.",
        channel=channel,
        when=verbatim(f"<t:{found.started_at:.0f}:f>"),
    )
    left_out = counted(
        file.left_out,
        "The oldest line is left out, because the file would be too large for Discord.",
        "The oldest {count} lines are left out, because the file would be too large for Discord.",
    )
    return joined((told, left_out if file.left_out else "")), file


def session_choices(tree: CheckedCommandTree, *, reader: SessionReader, zone: tzinfo) -> Choices:
    """Return what suggests the sessions of which the person may read something, newest first: those whose day, time or
    channel has what they typed.
    """

    async def choices(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        try:
            found = await reader.readable(tree.reader_of(interaction))
        except StoreError:
            # Discord has no place for the reason here; the command itself gives it.
            return []
        named = {each.id: _name_of(each, channel_name(interaction, each.channel_id), zone) for each in found}
        fitting = [(name, key) for key, name in named.items() if typed.casefold() in name.casefold()]
        return [app_commands.Choice(name=name, value=key) for name, key in fitting[:_MOST_CHOICES]]

    return choices


def _name_of(session: SessionBegin, channel: str, zone: tzinfo) -> str:
    # As in a file's name, so that it is the same in every language.
    begun = datetime.fromtimestamp(session.started_at, zone)
    return f"{begun:%Y-%m-%d %H:%M} · {channel}"[:_NAME_CHARS]
