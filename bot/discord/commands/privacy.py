"""The slash commands with which members decide about what is kept of them: /privacy, /my-data and /forget-me.

Only the member who used the command sees the answer. /memory me and /memory forget are about facts on one server; these
are about everything, on all servers.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import discord
from discord import app_commands

from compaction.errors import StoreError

if TYPE_CHECKING:
    from bot.memory.erasing import ErasureReport
    from bot.memory.personal_data import DataFile

NOTHING_KEPT = "I keep nothing of you."
NOT_SURE = (
    "This would delete everything that I keep of you, on all servers, and cannot be undone. /my-data gives you a copy "
    "first. To go on, use /forget-me with sure: True."
)
OUT_OF_REACH = (
    "I cannot reach the backups and exports that whoever runs me may have made: ask them. What was sent to other "
    "services (/privacy names them) is kept or deleted by their rules."
)


class PersonalRecords(Protocol):
    """What the commands work on; `bot.memory.personal_data.PersonalData` implements it."""

    async def file_of(self, person_id: str) -> DataFile:
        """Return everything that is kept of a person as a file. Raises `StoreError`."""

    async def forget(self, person_id: str) -> ErasureReport:
        """Forget a person everywhere. Raises `StoreError`, and `OSError` for the log files."""


@dataclass(frozen=True, slots=True)
class PrivacyFacts:
    """What /privacy tells, from the settings. `recipients`: who gets a part of the conversation, as sentences."""

    recipients: str
    retention_days: float
    keeps_facts: bool
    logs_speech: bool

    def text(self) -> str:
        """Return the answer to /privacy: what is kept, where, how long, who gets it, and what people can do."""
        kept = "what is said in my voice channel, as text with names and times; what I answer; summaries of it; short "
        kept += "notes of shared screens, but no pictures"
        if self.keeps_facts:
            kept += "; a few lasting facts that you state about yourself, for this server only"
        log = "what is said too" if self.logs_speech else "numbers and times, but nothing that is said"
        until = "kept until somebody deletes it"
        if self.retention_days:
            until = f"deleted {self.retention_days:g} days after the end of the session"
        ways = (
            "/my-data sends you a file with everything that I keep of you. /forget-me deletes it on all servers. "
            "/memory me shows the facts about you on this server, and /memory forget deletes them. /opt-out stops me "
            "from hearing you."
        )
        return "\n".join(
            (
                f"**What I keep:** {kept}. My log has {log}.",
                "**Where:** in a database and log files on the machine that I run on. Whoever runs me can read them.",
                f"**How long:** all of it is {until}.",
                f"**Who gets it:** {self.recipients}",
                f"**What you can do:** {ways}",
                OUT_OF_REACH,
            )
        )


def add_privacy_commands(tree: app_commands.CommandTree[Any], *, records: PersonalRecords, facts: PrivacyFacts) -> None:
    """Put /privacy, /my-data and /forget-me on `tree`."""

    @tree.command(name="privacy", description="What I keep, where, how long, who gets it, and how to delete it.")
    async def privacy(interaction: discord.Interaction) -> None:
        await interaction.response.send_message(facts.text(), ephemeral=True, suppress_embeds=True)

    @tree.command(name="my-data", description="Get a file with everything that I keep of you, on all servers.")
    async def my_data(interaction: discord.Interaction) -> None:
        # Reading takes longer than Discord's 3 seconds.
        await interaction.response.defer(ephemeral=True, thinking=True)
        sentence, file = await send_data(records, str(interaction.user.id))
        if file is None:
            await interaction.followup.send(sentence, ephemeral=True)
        else:
            content = discord.File(io.BytesIO(file.content), file.name)
            await interaction.followup.send(sentence, file=content, ephemeral=True)

    @tree.command(name="forget-me", description="Delete everything that I keep of you, on all servers.")
    @app_commands.describe(sure="True: delete it now. It cannot be undone.")
    async def forget_me(interaction: discord.Interaction, sure: bool) -> None:
        if not sure:
            await interaction.response.send_message(NOT_SURE, ephemeral=True)
            return
        await interaction.response.defer(ephemeral=True, thinking=True)
        await interaction.followup.send(await forget_person(records, str(interaction.user.id)), ephemeral=True)


async def send_data(records: PersonalRecords, person_id: str) -> tuple[str, DataFile | None]:
    """Return the sentence for a person who asked for their data, and the file."""
    try:
        file = await records.file_of(person_id)
    except StoreError as error:
        return f"I could not read it now. {error} Try again in a moment.", None
    if file.is_empty:
        return NOTHING_KEPT, None
    sentence = (
        f"This is everything that I keep of you, on all servers: {_count(file.turn_count, 'thing')} that you said, my "
        "replies to you, notes of your screen, and facts about you. Only you see this message."
    )
    return sentence, file


async def forget_person(records: PersonalRecords, person_id: str) -> str:
    """Forget a person, and return what was done and what was not."""
    try:
        done = await records.forget(person_id)
    except StoreError as error:
        return f"I could not delete all of it now. {error} Use /forget-me again in a moment."
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return f"I deleted it from the database, but not from the log ({reason}). Use /forget-me again in a moment."
    stored = done.stored
    if not (stored.turns or stored.about or stored.sessions or done.log_lines):
        return f"{NOTHING_KEPT} {OUT_OF_REACH}"
    later = "" if stored.wiped else " Its last bytes go within a day, because another program reads my database now."
    return (
        f"Done: I have forgotten {_count(stored.turns, 'thing')} that you said or did, "
        f"{_count(stored.answers, 'reply', 'replies')} of mine, {_count(stored.notes, 'note')} of your screen and "
        f"{_count(stored.about, 'fact')} about you, on all servers. Summaries are made again without it; search and "
        f"log have lost it too.{later} What other people said stays theirs. An /opt-out stays. {OUT_OF_REACH} "
        "If you go on talking with me, I keep that again; /opt-out prevents it."
    )


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
