"""The slash commands with which members decide about what is kept of them: /privacy, /my-data and /forget-me.

Only the member who used the command sees the answer.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import discord
from discord import app_commands

from bot.channel.markdown import escape_markdown
from bot.discord.answers import Answer, answer, answer_when_known
from bot.texts.text import Text, counted, joined, sentence_of, verbatim
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.memory.people import PeopleBook
    from bot.memory.personal_data import PersonalData
    from compaction.memory.people import PersonFact

# How much of the facts about a person stands above their file, which has all of them.
_MOST_FACTS_CHARS = 1_500
NOTHING_KEPT = Text("I keep nothing of you.")
WHO_READS = Text(
    "**Who reads it:** people read what was said while they were in my channel. Who comes late may catch up while I am "
    "there. So I keep when each person was there. I do not for people who opted out: they can read nothing later. My "
    "notice says if managers of this server may read more."
)
NO_FACTS = Text(
    "I keep no facts about you. What you said here is part of the sessions that I remember: /my-data shows it, and "
    "/forget-me deletes it."
)
NOT_SURE = Text(
    "This would delete everything that I keep of you, on all servers, and cannot be undone. /my-data gives you a copy "
    "first. To go on, use /forget-me with sure: True."
)
OUT_OF_REACH = Text(
    "What stays: copies that others have made; backups and exports of the person who runs me; my written answers on "
    "Discord, and messages there that I may no longer change, until a moderator deletes them; what other services got, "
    "by their rules; what I sent to an address of a server's managers: ask them. /privacy names these services."
)


@dataclass(frozen=True, slots=True)
class PrivacyFacts:
    """What /privacy tells, from the settings. `recipients`: who gets a part of the conversation on a server, as
    sentences.
    """

    recipients: Callable[[int], Text]
    # For how many days what is said on a server is kept, and for how many all log lines are; 0: for ever.
    retention_days: Callable[[int], float]
    log_days: float
    keeps_facts: bool
    # The other machine that has the database; empty: the bot's own has it.
    database_host: str = ""

    def text(self, guild_id: int) -> Text:
        """Return the answer to /privacy: what is kept, where, how long, who gets it, and what people can do."""
        kept = (
            Text(
                "**What I keep:** what is said in my voice channel, as text with names and times; what I answer; "
                "summaries of it; short notes of shared screens, but no pictures; a few lasting facts that you state "
                "about yourself, for this server only."
            )
            if self.keeps_facts
            else Text(
                "**What I keep:** what is said in my voice channel, as text with names and times; what I answer; "
                "summaries of it; short notes of shared screens, but no pictures."
            )
        )
        days = self.retention_days(guild_id)
        log = Text("My log has numbers and times, but nothing that is said.")
        until = (
            counted(
                days,
                "**How long:** all of it is deleted {count} day after it was said or seen.",
                "**How long:** all of it is deleted {count} days after it was said or seen.",
            )
            if days
            else Text("**How long:** all of it is kept until somebody deletes it.")
        )
        return joined(
            (
                joined((kept, log)),
                self._where,
                until if days == self.log_days else joined((until, self._log_until)),
                WHO_READS,
                Text("**Who gets it:** {recipients}", recipients=self.recipients(guild_id)),
                Text(
                    "**What you can do:** /my-data sends you a file with everything that I keep of you, and shows the "
                    "facts about you on this server. /forget-me deletes it on all servers, or those facts alone. "
                    "/opt-out stops me from hearing you."
                ),
                OUT_OF_REACH,
            ),
            "\n",
        )

    @property
    def _log_until(self) -> Text:
        # The log is one for all servers, so a shorter time that a server has chosen does not reach it.
        if not self.log_days:
            return Text("My log is kept until whoever runs me deletes it.")
        return counted(self.log_days, "My log is deleted after {count} day.", "My log is deleted after {count} days.")

    @property
    def _where(self) -> Text:
        if self.database_host:
            return Text(
                "**Where:** in a database on {host}, and in log files on the machine that I run on. Whoever runs me "
                "can read them.",
                host=self.database_host,
            )
        return Text(
            "**Where:** in a database and log files on the machine that I run on. Whoever runs me can read them."
        )


def add_privacy_commands(
    tree: app_commands.CommandTree[Any], *, records: PersonalData, people: PeopleBook, facts: PrivacyFacts
) -> None:
    """Put /privacy, /my-data and /forget-me on `tree`."""

    @tree.command(name="privacy", description="What I keep, where, how long, who gets it, and how to delete it.")
    async def privacy(interaction: discord.Interaction) -> None:
        await answer(interaction, facts.text(interaction.guild_id or 0))

    @tree.command(name="my-data", description="Get a file with everything that I keep of you, on all servers.")
    async def my_data(interaction: discord.Interaction) -> None:
        work = send_data(records, people, interaction.guild_id, str(interaction.user.id))
        await answer_when_known(interaction, work)

    @tree.command(name="forget-me", description="Delete everything that I keep of you, on all servers.")
    @app_commands.describe(
        sure="True: delete it now. It cannot be undone.",
        what="facts: only what you told about yourself on this server; the rest stays.",
    )
    async def forget_me(
        interaction: discord.Interaction, sure: bool, what: Literal["everything", "facts"] = "everything"
    ) -> None:
        if not sure:
            await answer(interaction, NOT_SURE)
            return
        person_id = str(interaction.user.id)
        await answer_when_known(
            interaction,
            delete_facts(records, interaction.guild_id, person_id)
            if what == "facts"
            else forget_person(records, person_id),
        )


async def format_facts(people: PeopleBook, guild_id: int | None, person_id: str) -> Text:
    """Return the facts about a person on a server with their dates; empty if there are none. Raises `StoreError`."""
    facts = await people.facts_about(guild_id, person_id)
    holding = [_line(fact) for fact in facts if fact.is_current]
    former = [_line(fact) for fact in facts if not fact.is_current]
    lines = [Text("What you have said of yourself on this server:"), *holding] if holding else []
    if former:
        lines += [Text("No longer so, as far as I know:"), *former]
    kept: list[Text] = []
    for line in lines:
        if sum(map(len, kept)) + len(line) > _MOST_FACTS_CHARS:
            return joined((*kept, Text("There is more in the file.")), "\n")
        kept.append(line)
    return joined(kept, "\n")


def _line(fact: PersonFact) -> Text:
    # Discord writes the date as the reader's own Discord does.
    return verbatim(f"- {escape_markdown(fact.text)} (<t:{fact.at:.0f}:D>)")


async def delete_facts(records: PersonalData, guild_id: int | None, person_id: str) -> Text:
    """Delete the facts about a person on a server. Raises `StoreError`."""
    count = await records.forget_facts(guild_id, person_id)
    if not count:
        return NO_FACTS
    return counted(
        count,
        "Done: I have deleted the one thing that you had said of yourself on this server. What was said in a session "
        "stays in its record; /forget-me deletes that too.",
        "Done: I have deleted all {count} things that you had said of yourself on this server. What was said in a "
        "session stays in its record; /forget-me deletes that too.",
    )


async def send_data(records: PersonalData, people: PeopleBook, guild_id: int | None, person_id: str) -> Answer | Text:
    """Return the file for a person who asked for their data, with the facts about them. Raises `StoreError`."""
    file = await records.file_of(person_id)
    if file.is_empty:
        return NOTHING_KEPT
    sentence = counted(
        file.turn_count,
        "This is everything that I keep of you, on all servers: {count} thing that you said, my replies to you, notes "
        "of your screen, and facts about you. Only you see this message.",
        "This is everything that I keep of you, on all servers: {count} things that you said, my replies to you, notes "
        "of your screen, and facts about you. Only you see this message.",
    )
    facts = await format_facts(people, guild_id, person_id)
    return Answer(joined((sentence, facts), "\n\n"), file=discord.File(io.BytesIO(file.content), file.name))


async def forget_person(records: PersonalData, person_id: str) -> Text:
    """Forget a person, and return what was done and what was not."""
    try:
        done = await records.forget(person_id)
    except StoreError as error:
        return Text(
            "I could not delete all of it now. {error} Use /forget-me again in a moment.", error=sentence_of(error)
        )
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Text(
            "I deleted it from the database, but not from the log ({reason}). Use /forget-me again in a moment.",
            reason=reason,
        )
    stored = done.stored
    if not (stored.turns or stored.about or stored.sessions or stored.rules or stored.prompts or done.log_lines):
        return joined((NOTHING_KEPT, OUT_OF_REACH))
    done_with = Text(
        "Done: I have forgotten {turns} that you said or did, {answers} of mine, {notes} of your screen and {facts} "
        "about you, on all servers. Summaries are made again without it; search and log have lost it too.",
        turns=counted(stored.turns, "{count} thing", "{count} things"),
        answers=counted(stored.answers, "{count} reply", "{count} replies"),
        notes=counted(stored.notes, "{count} note", "{count} notes"),
        facts=counted(stored.about, "{count} fact", "{count} facts"),
    )
    return joined(
        (
            done_with,
            "" if done.wiped else Text("Its last bytes go within a day."),
            Text("What other people said stays theirs. An /opt-out stays."),
            OUT_OF_REACH,
            Text("If you go on talking with me, I keep that again; /opt-out prevents it."),
        )
    )
