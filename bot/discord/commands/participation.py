"""The slash commands for whether the bot speaks and whom it hears: /quiet, /silence, /talk, /opt-out and /opt-in.

`bot.discord.access` says who may use which of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import discord
from discord import app_commands

from bot.discord.answers import answer_when_known, guild_id_of
from bot.discord.commands.store_failures import not_chosen
from bot.discord.failures import CheckedView
from bot.errors import BotError
from bot.guild import MOST_SILENT_MINUTES  # noqa: TC001 - discord.py reads the annotation
from bot.participation.all_guilds import MAY_SPEAK, SILENCED_FOR_GOOD, NotStoredError
from bot.participation.statistics import silenced_for
from bot.texts.catalogue import ENGLISH
from bot.texts.text import Text, in_language, joined
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.discord.command_tree import CheckedCommandTree
    from bot.participation.all_guilds import GuildParticipations


TALK_AGAIN = Text("Talk again")


class Silences(Protocol):
    """Ends a silence; `bot.participation.all_guilds.GuildParticipations` implements it."""

    async def lift_silence(self, guild_id: int, *, by: int, moderator: bool) -> bool:
        """Lift the silence there; return whether the bot may speak now. Raises `BotError`, `StoreError`."""


def add_participation_commands(tree: CheckedCommandTree, *, participation: GuildParticipations) -> None:
    _add_silence(tree, participation)
    _add_opting(tree, participation)


def _add_silence(tree: CheckedCommandTree, participation: GuildParticipations) -> None:
    @tree.command(
        name="quiet", description="Silence me: I go on listening and say nothing until /talk or the session's end."
    )
    @app_commands.describe(minutes="Be silent for so many minutes only.")
    @app_commands.rename(minutes="for")
    @app_commands.guild_only()
    async def quiet(
        interaction: discord.Interaction, minutes: app_commands.Range[int, 1, MOST_SILENT_MINUTES] | None = None
    ) -> None:
        await _answer(interaction, lambda: be_quiet(participation, interaction, minutes=minutes))

    @tree.command(name="silence", description="Silence me on this server until a moderator uses /talk.")
    @app_commands.guild_only()
    async def silence(interaction: discord.Interaction) -> None:
        await _answer(interaction, lambda: be_silent(participation, interaction))

    @tree.command(name="talk", description="Let me speak again. A moderator's silence takes a moderator.")
    @app_commands.guild_only()
    async def talk(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, let_talk(participation, interaction, tree=tree))


def _add_opting(tree: app_commands.CommandTree[Any], participation: GuildParticipations) -> None:
    @tree.command(
        name="opt-out", description="Have me not hear you on this server: nothing you say is kept or answered."
    )
    @app_commands.guild_only()
    async def opt_out(interaction: discord.Interaction) -> None:
        await _answer(interaction, lambda: set_opt_out(participation, interaction, out=True))

    @tree.command(name="opt-in", description="Have me hear you again after /opt-out.")
    @app_commands.guild_only()
    async def opt_in(interaction: discord.Interaction) -> None:
        await _answer(interaction, lambda: set_opt_out(participation, interaction, out=False))


async def be_quiet(
    participation: GuildParticipations, interaction: discord.Interaction, *, minutes: int | None
) -> Text:
    await participation.silence_for_now(guild_id_of(interaction), by=interaction.user.id, minutes=minutes)
    if minutes is None:
        return Text("I am silent until /talk or the end of this session. I go on listening.")
    return silenced_for(minutes)


async def be_silent(participation: GuildParticipations, interaction: discord.Interaction) -> Text:
    await participation.silence_always(guild_id_of(interaction), by=interaction.user.id)
    return Text("I am silent on this server until a moderator uses /talk. I go on listening where I am.")


async def let_talk(silences: Silences, interaction: discord.Interaction, *, tree: CheckedCommandTree) -> Text:
    """Let the bot speak again, for /talk and its button, and return what the person reads."""
    by_moderator = tree.user_of(interaction).is_moderator
    return await _sentence_after(lambda: end_silence(silences, interaction, by_moderator=by_moderator))


async def end_silence(silences: Silences, interaction: discord.Interaction, *, by_moderator: bool) -> Text:
    if await silences.lift_silence(guild_id_of(interaction), by=interaction.user.id, moderator=by_moderator):
        return MAY_SPEAK
    return SILENCED_FOR_GOOD


async def set_opt_out(participation: GuildParticipations, interaction: discord.Interaction, *, out: bool) -> Text:
    guild_id, person_id = guild_id_of(interaction), interaction.user.id
    problem: str = ""
    try:
        await participation.set_opt_out(guild_id, person_id, out=out)
    except NotStoredError as error:
        problem = not_chosen(error)
    if out:
        told = Text("I no longer hear you on this server: what you say is not even decrypted. /opt-in takes that back.")
        forgets = Text(
            "What I kept of you before is no longer used. Shall I forget it too? /forget-me deletes it, on all servers."
        )
        return joined((told, problem or forgets))
    if participation.must_agree(guild_id, person_id):
        told = Text(
            "Your opt-out on this server is over. I hear only people who press *Hear me* below my notice, in each "
            "session anew."
        )
        return joined((told, problem))
    return joined((Text("I hear you again on this server."), problem))


async def _answer(interaction: discord.Interaction, do: Callable[[], Awaitable[Text]]) -> None:
    """Run the command and answer, visible only to the member."""
    await answer_when_known(interaction, _sentence_after(do))


async def _sentence_after(do: Callable[[], Awaitable[Text]]) -> Text:
    """Run the command and return the answer: what it says, or why it failed."""
    try:
        return await do()
    except (BotError, StoreError) as error:
        return not_chosen(error)


class TalkButton(CheckedView):
    """The button *Talk again*, below the sentence that the bot is silent. It does what /talk does, for the same people.

    One instance serves all such sentences of an earlier process."""

    def __init__(self, silences: Silences, tree: CheckedCommandTree, language: str = ENGLISH) -> None:
        super().__init__(tree, "talk")
        self.talk_again.label = in_language(TALK_AGAIN, language)
        self._silences = silences

    @discord.ui.button(style=discord.ButtonStyle.secondary, custom_id="roomtone:talk-again")
    async def talk_again(self, interaction: discord.Interaction, _: discord.ui.Button[Any]) -> None:
        """Somebody lets the bot speak again."""
        await answer_when_known(interaction, let_talk(self._silences, interaction, tree=self.tree))
