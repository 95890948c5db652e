"""What was said in a session, for the person who asks: /recap, /transcript, and the button *What did I miss?*"""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Literal

import discord
from discord import app_commands

from bot.brain.tools.memory import NOTHING_MISSED
from bot.channel.port import RECAP
from bot.discord.answers import Answer, answer_when_known, choices, digest_embed, language_of
from bot.discord.command_tree import CheckedCommandTree, CheckedView
from bot.discord.voice_channels import channel_name, nearest_channels
from bot.memory.transcript_files import TranscriptFormat, TranscriptHead, write_transcript
from bot.texts.text import Text, counted, in_language, joined, verbatim
from compaction.errors import StoreError
from compaction.model import SessionId

if TYPE_CHECKING:
    from bot.clock import Clock
    from bot.memory.digests import Digests
    from bot.memory.session_views import SessionViews
    from bot.store.sessions import SessionBegin, StoredSession
    from bot.viewers import Viewer

NEVER_AWAY = Text("You were here all the time. Use `minutes` to choose how far back I go.")
MISSED = Text("What did I miss?")
TITLE = Text("While you were away from {channel}")
LATELY = Text("Lately in {channel}")
MOST_MINUTES = 720
NOTHING_READABLE = Text("There is nothing in that session that I can tell you.")
_FORMATS = {
    "markdown": TranscriptFormat.MARKDOWN,
    "json": TranscriptFormat.JSON,
    "srt": TranscriptFormat.SUBRIP,
    "webvtt": TranscriptFormat.WEBVTT,
}
NOTHING_SAID = Text("I have nothing from that session that I can show you.")
# The same for a session that does not exist and for one that the person may not read.
NO_SESSION = Text(
    "I found no such session that you can read. You can read what was said while you were in the "
    "channel. If that channel has an age limit, use the command in a channel that has one too."
)


def add_sessions(
    tree: CheckedCommandTree, *, views: SessionViews, digests: Digests, clock: Clock, zone: tzinfo
) -> None:
    """Put /recap and /transcript on `tree`, and the button for who comes back. `zone`: the
    time zone of times of day.
    """
    answers = _SessionAnswers(tree, views, digests, clock, zone)
    tree.buttons.catch_up = partial(catch_up_button, answers, tree)

    @tree.command(name="recap", description="See what a session was about: topics, decisions, open questions, people.")
    @app_commands.describe(
        what="session: what people talked about. missed: what people said while you were away.",
        session="Which session. If you choose none, I take the newest one, here if possible.",
        minutes="See what was said in the last minutes. Write how many minutes.",
    )
    @app_commands.guild_only()
    async def recap(
        interaction: discord.Interaction,
        what: Literal["session", "missed"] = "session",
        session: str | None = None,
        minutes: app_commands.Range[int, 1, MOST_MINUTES] | None = None,
    ) -> None:
        is_missed = what == "missed" or minutes is not None
        work = answers.missed(interaction, minutes) if is_missed else answers.recap(interaction, session)
        await answer_when_known(interaction, work)

    @tree.command(name="transcript", description="Get a file with what was said in a session. Only you see it.")
    @app_commands.rename(wanted="format")
    @app_commands.describe(
        wanted="Markdown is for reading, JSON is for programs, SRT and WebVTT are subtitles for a video.",
        session="Which session. If you choose none, I take the newest one, here if possible.",
    )
    @app_commands.guild_only()
    async def transcript(
        interaction: discord.Interaction,
        wanted: Literal["markdown", "json", "srt", "webvtt"] = "markdown",
        session: str | None = None,
    ) -> None:
        await answer_when_known(interaction, answers.transcript(interaction, session, _FORMATS[wanted]))

    @recap.autocomplete("session")
    @transcript.autocomplete("session")
    async def suggested(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        """Suggest the sessions of which the person may read something, newest first: those whose day, time or channel
        has what they typed.
        """
        try:
            found = await views.readable(tree.viewer_of(interaction))
        except StoreError:
            # Discord has no place for the reason here; the command itself gives it.
            return []
        return choices(
            [(_name_of(each, channel_name(interaction, each.channel_id), zone), each.id) for each in found], typed
        )


def catch_up_button(answers: _SessionAnswers, tree: CheckedCommandTree, language: str) -> CheckedView:
    """Return the button below the offer. It does what /recap does with `missed`, for the same people."""

    async def missed(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, answers.missed(interaction, None))

    view = CheckedView(tree, "recap")
    view.add_button("roomtone:catch-up", in_language(MISSED, language), missed)
    return view


@dataclass(frozen=True, slots=True)
class _SessionAnswers:
    """Tells people of sessions that they may read. The methods raise `StoreError`."""

    tree: CheckedCommandTree
    views: SessionViews
    digests: Digests
    clock: Clock
    zone: tzinfo

    async def missed(self, interaction: discord.Interaction, minutes: int | None) -> Answer | Text:
        """Return what was said in the last `minutes`, or while the person was away."""
        person = self.tree.viewer_of(interaction)
        session = await self.views.find(person, nearest=nearest_channels(interaction), catches_up=True)
        if session is None:
            return NO_SESSION
        if minutes is None:
            digest = await self.digests.missed(session, person)
        else:
            digest = await self.digests.of(session, person, since=self.clock.now() - 60 * minutes, catches_up=True)
        if digest is None:
            return NEVER_AWAY
        if digest.is_empty:
            return NOTHING_MISSED
        channel = channel_name(interaction, session.channel_id)
        title = (TITLE if minutes is None else LATELY).fill(channel=channel)
        return Answer(embed=digest_embed(digest, language_of(interaction), title=title, shows_last=True))

    async def recap(self, interaction: discord.Interaction, wanted: str | None) -> Answer | Text:
        """Return what a session was about. `wanted`: its id; None: the newest, here if possible."""
        person, session = await self._find(interaction, wanted)
        if session is None:
            return NO_SESSION
        digest = await self.digests.of(session, person)
        if digest.is_empty:
            return NOTHING_READABLE
        title = RECAP.fill(channel=channel_name(interaction, session.channel_id))
        # Without a model there is nothing else of what was said.
        embed = digest_embed(digest, language_of(interaction), title=title, shows_last=digest.is_certain)
        return Answer(embed=embed)

    async def transcript(
        self, interaction: discord.Interaction, wanted: str | None, form: TranscriptFormat
    ) -> Answer | Text:
        """Return what was said in a session as a file. `wanted`: as for `recap`."""
        person, session = await self._find(interaction, wanted)
        if session is None:
            return NO_SESSION
        read = await self.views.read(session, person)
        if not read.turns:
            return NOTHING_SAID
        channel = channel_name(interaction, session.channel_id)
        head = TranscriptHead(
            session_id=session.id,
            server="" if interaction.guild is None else interaction.guild.name,
            channel=channel,
            started_at=session.started_at,
            ended_at=session.ended_at,
            missing=read.cut,
        )
        file = await asyncio.to_thread(write_transcript, read.turns, head, form, zone=self.zone)
        about = counted(
            file.lines,
            "This is the session in {channel} that began {when}. It has {count} line. Only you see this message.",
            "This is the session in {channel} that began {when}. It has {count} lines. Only you see this message.",
            channel=channel,
            when=verbatim(f"<t:{session.started_at:.0f}:f>"),
        )
        left_out = counted(
            file.left_out,
            "The oldest line is missing, because the file was too large for Discord.",
            "The oldest {count} lines are missing, because the file was too large for Discord.",
        )
        sentence = joined((about, left_out if file.left_out else ""))
        return Answer(sentence, file=discord.File(io.BytesIO(file.content), file.name))

    async def _find(self, interaction: discord.Interaction, wanted: str | None) -> tuple[Viewer, StoredSession | None]:
        person, chosen = self.tree.viewer_of(interaction), None if wanted is None else SessionId(wanted)
        return person, await self.views.find(person, session_id=chosen, nearest=nearest_channels(interaction))


def _name_of(session: SessionBegin, channel: str, zone: tzinfo) -> str:
    # As in a file's name, so that it is the same in every language.
    begun = datetime.fromtimestamp(session.started_at, zone)
    return f"{begun:%Y-%m-%d %H:%M} · {channel}"
