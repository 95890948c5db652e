"""The slash command /transcript: what was said in a session, as a file for the person who asks."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, Literal

import discord
from discord import app_commands

from bot.discord.answers import answer, defer
from bot.discord.audience import channel_name
from bot.discord.commands.store_failures import not_read
from bot.discord.session_choice import NO_SESSION, chosen_session, session_choices
from bot.memory.transcript_files import TranscriptFormat, TranscriptHead, write_transcript
from bot.texts.text import Text, counted, joined, verbatim
from compaction.errors import StoreError

if TYPE_CHECKING:
    from datetime import tzinfo

    from bot.discord.command_tree import CheckedCommandTree
    from bot.memory.session_reader import SessionReader
    from bot.memory.transcript_files import TranscriptFile
    from bot.readers import Reader

_FORMATS = {
    "markdown": TranscriptFormat.MARKDOWN,
    "json": TranscriptFormat.JSON,
    "srt": TranscriptFormat.SUBRIP,
    "webvtt": TranscriptFormat.WEBVTT,
}
NOTHING_SAID = Text("Nothing is kept that was said in that session and that I may show.")


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
        person = tree.reader_of(interaction)
        sentence, file = await transcript_for(interaction, _FORMATS[wanted], session, person, reader=reader, zone=zone)
        content = discord.utils.MISSING if file is None else discord.File(io.BytesIO(file.content), file.name)
        await answer(interaction, sentence, file=content)

    @transcript.autocomplete("session")
    async def sessions(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        return await session_choices(interaction, typed, tree.reader_of(interaction), reader=reader, zone=zone)


async def transcript_for(
    interaction: discord.Interaction,
    wanted: TranscriptFormat,
    session: str | None,
    person: Reader,
    *,
    reader: SessionReader,
    zone: tzinfo,
) -> tuple[Text, TranscriptFile | None]:
    """Return the sentence for the person and the file, if there is one."""
    try:
        found = await chosen_session(interaction, session, person, reader=reader)
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
