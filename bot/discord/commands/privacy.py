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
    from bot.discord.commands.setting_values import OperatorSettings
    from bot.memory.people import PeopleBook
    from bot.memory.personal_data import PersonalData
    from bot.posts.notice import ListeningNotice
    from bot.server_settings import ServerSettingsBook
    from compaction.memory.people import PersonFact

# How much of the facts about a person stands above their file, which has all of them.
_MOST_FACTS_CHARS = 1_500
NOTHING_KEPT = Text("I keep nothing about you.")
WHO_READS = Text(
    "**Who reads it:** You can read what was said while you were in my channel. If you come late, "
    "you can read what you missed while I am still there. For this, I remember when each person was "
    "there. I do not remember it for people who used /opt-out, so they can read nothing later. My "
    "notice tells you if server managers can read more."
)
NO_FACTS = Text(
    "I keep no facts about you. But I keep what you said here, as a part of the sessions. To see it, "
    "use /my-data. To delete it, use /forget-me."
)
NOT_SURE = Text(
    "This deletes everything that I keep about you, on all servers. You cannot undo it. To get a "
    "copy first, use /my-data. To delete everything now, use /forget-me with sure: True."
)
OUT_OF_REACH = Text(
    "Some things stay, because I cannot delete them: copies that other people made; backups of the "
    "owner of this bot; some of my old messages on Discord, which a moderator can delete; what "
    "other services got, and /privacy names these services; sessions that I sent to an address of "
    "server managers."
)


@dataclass(frozen=True, slots=True)
class PrivacyFacts:
    """What /privacy tells, from the settings. `notice`: knows who gets a part of the conversation."""

    notice: ListeningNotice
    servers: ServerSettingsBook
    operator: OperatorSettings
    # For how many days all log lines are kept; 0: for ever.
    log_days: float
    keeps_facts: bool
    # The other machine that has the database; empty: the bot's own has it.
    database_host: str = ""

    def text(self, guild_id: int) -> Text:
        """Return the answer to /privacy: what is kept, where, how long, who gets it, and what people can do."""
        kept = (
            Text(
                "**What I keep:** I keep what people say in my voice channel, as text with names and "
                "times. I also keep my answers, summaries, and short notes about shared screens. I "
                "keep a few facts that you tell about yourself, for this server only. I keep no "
                "sound and no pictures."
            )
            if self.keeps_facts
            else Text(
                "**What I keep:** I keep what people say in my voice channel, as text with names and "
                "times. I also keep my answers, summaries, and short notes about shared screens. I "
                "keep no sound and no pictures."
            )
        )
        days = self.operator.kept_days(self.servers.of(guild_id))
        log = Text("My log has numbers and times, but nothing that you say.")
        until = (
            counted(
                days,
                "**How long:** I delete everything {count} day after somebody said or showed it.",
                "**How long:** I delete everything {count} days after somebody said or showed it.",
            )
            if days
            else Text("**How long:** I keep everything until somebody deletes it.")
        )
        return joined(
            (
                joined((kept, log)),
                self._where,
                until if days == self.log_days else joined((until, self._log_until)),
                WHO_READS,
                Text("**Who gets it:** {recipients}", recipients=self.notice.for_room(self.servers.of(guild_id)).facts),
                Text(
                    "**What you can do:** Use /my-data to get a file with everything that I keep "
                    "about you, and to see the facts about you on this server. Use /forget-me to "
                    "delete all of it on all servers, or only these facts. Use /opt-out, and I no "
                    "longer hear you."
                ),
                OUT_OF_REACH,
            ),
            "\n",
        )

    @property
    def _log_until(self) -> Text:
        # The log is one for all servers, so a shorter time that a server has chosen does not reach it.
        if not self.log_days:
            return Text("I keep my log until the owner of this bot deletes it.")
        return counted(self.log_days, "I delete my log after {count} day.", "I delete my log after {count} days.")

    @property
    def _where(self) -> Text:
        if self.database_host:
            return Text(
                "**Where:** I keep it in a database on {host}, and in log files on the computer that "
                "runs me. The owner of this bot can read them.",
                host=self.database_host,
            )
        return Text(
            "**Where:** I keep it in a database and in log files on the computer that runs me. The "
            "owner of this bot can read them."
        )


def add_privacy_commands(
    tree: app_commands.CommandTree[Any], *, records: PersonalData, people: PeopleBook, facts: PrivacyFacts
) -> None:
    """Put /privacy, /my-data and /forget-me on `tree`."""

    @tree.command(
        name="privacy", description="See what I keep, where, how long, who gets it, and how you can delete it."
    )
    async def privacy(interaction: discord.Interaction) -> None:
        await answer(interaction, facts.text(interaction.guild_id or 0))

    @tree.command(name="my-data", description="Get a file with everything that I keep about you, on all servers.")
    async def my_data(interaction: discord.Interaction) -> None:
        work = send_data(records, people, interaction.guild_id, str(interaction.user.id))
        await answer_when_known(interaction, work)

    @tree.command(name="forget-me", description="Delete everything that I keep about you, on all servers.")
    @app_commands.describe(
        sure="True: I delete it now. You cannot undo this.",
        what="facts: I delete only what you told about yourself here. The rest stays.",
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
    lines = [Text("This is what you have said about yourself on this server:"), *holding] if holding else []
    if former:
        lines += [Text("As far as I know, this is no longer true:"), *former]
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
        "Done. I have deleted the one thing that you said about yourself on this server. The "
        "sessions still have what you said in them. To delete that too, use /forget-me.",
        "Done. I have deleted all {count} things that you said about yourself on this server. The "
        "sessions still have what you said in them. To delete that too, use /forget-me.",
    )


async def send_data(records: PersonalData, people: PeopleBook, guild_id: int | None, person_id: str) -> Answer | Text:
    """Return the file for a person who asked for their data, with the facts about them. Raises `StoreError`."""
    file = await records.file_of(person_id)
    if file.is_empty:
        return NOTHING_KEPT
    sentence = counted(
        file.turn_count,
        "This is everything that I keep about you, on all servers: {count} thing that you said, my "
        "answers to you, notes about your screen, and facts about you. Only you see this message.",
        "This is everything that I keep about you, on all servers: {count} things that you said, my "
        "answers to you, notes about your screen, and facts about you. Only you see this message.",
    )
    facts = await format_facts(people, guild_id, person_id)
    return Answer(joined((sentence, facts), "\n\n"), file=discord.File(io.BytesIO(file.content), file.name))


async def forget_person(records: PersonalData, person_id: str) -> Text:
    """Forget a person, and return what was done and what was not."""
    try:
        done = await records.forget(person_id)
    except StoreError as error:
        return Text("I could not delete all of it. {error} Use /forget-me again in a moment.", error=sentence_of(error))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Text(
            "I deleted it from the database, but I could not delete it from the log ({reason}). Use "
            "/forget-me again in a moment.",
            reason=reason,
        )
    stored = done.stored
    if not (stored.turns or stored.about or stored.sessions or stored.rules or stored.prompts or done.log_lines):
        return joined((NOTHING_KEPT, OUT_OF_REACH))
    done_with = Text(
        "Done. On all servers I have deleted {turns} that you said or did, {answers} of mine, "
        "{notes} about your screen and {facts} about you. I write my "
        "summaries again without them. They are no longer in my search and in my log files.",
        turns=counted(stored.turns, "{count} thing", "{count} things"),
        answers=counted(stored.answers, "{count} reply", "{count} replies"),
        notes=counted(stored.notes, "{count} note", "{count} notes"),
        facts=counted(stored.about, "{count} fact", "{count} facts"),
    )
    return joined(
        (
            done_with,
            "" if done.wiped else Text("The very last parts of it are gone within a day."),
            Text("I still keep what other people said. If you used /opt-out, I still do not hear you."),
            OUT_OF_REACH,
            Text("If you talk with me again, I keep that again. If you do not want this, use /opt-out."),
        )
    )
