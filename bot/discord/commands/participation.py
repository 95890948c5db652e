"""Whether the bot speaks and whom it hears: /quiet, /silence, /talk, /opt-out and /opt-in, and the buttons for it:
*Talk again*, and those below the notice where the bot asks before it hears anybody (`room.consent = "ask"`).

`bot.discord.access` says who may use which of them.
"""

from __future__ import annotations

from functools import partial

import discord
from discord import app_commands

from bot.discord.answers import answer_when_known, failure_sentence, guild_id_of
from bot.discord.command_tree import AnsweringView, CheckedCommandTree, CheckedView
from bot.guild import MOST_SILENT_MINUTES  # noqa: TC001 - discord.py reads the annotation
from bot.participation.guild_state import MAY_SPEAK, SILENCED_FOR_GOOD, GuildStates, NotStoredError
from bot.participation.statistics import silenced_for
from bot.texts.text import Text, in_language, joined

TALK_AGAIN = Text("Talk again")
HEARD = Text("I hear you now, until this session ends. To stop this, press *Do not hear me*.")
NOT_HEARD = Text("I do not hear you. I throw away the sound of your voice. To change this, press *Hear me*.")
HEAR_ME = Text("Hear me")
DO_NOT_HEAR_ME = Text("Do not hear me")
NOT_LISTENING_HERE = Text("I am not listening in this channel now.")


def add_participation_commands(tree: CheckedCommandTree, *, participation: GuildStates) -> None:
    """Put the commands on `tree`, and the buttons. `participation`: whom the bot hears, and whether it may speak."""
    tree.buttons.consent = partial(consent_buttons, participation, tree)
    tree.buttons.talk = partial(talk_button, participation, tree)

    @tree.command(name="quiet", description="I listen but say nothing until somebody uses /talk or the session ends.")
    @app_commands.describe(minutes="For how many minutes I am silent.")
    @app_commands.rename(minutes="for")
    @app_commands.guild_only()
    async def quiet(
        interaction: discord.Interaction, minutes: app_commands.Range[int, 1, MOST_SILENT_MINUTES] | None = None
    ) -> None:
        await answer_when_known(interaction, _be_quiet(participation, interaction, minutes=minutes))

    @tree.command(name="silence", description="Keep me silent on this server until a server manager uses /talk.")
    @app_commands.guild_only()
    async def silence(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, _be_silent(participation, interaction))

    @tree.command(name="talk", description="Let me speak again. After /silence only a server manager can do this.")
    @app_commands.guild_only()
    async def talk(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, _let_talk(participation, tree, interaction))

    @tree.command(
        name="opt-out", description="I no longer hear you on this server. I do not keep or answer what you say."
    )
    @app_commands.guild_only()
    async def opt_out(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, _set_opt_out(participation, interaction, out=True))

    @tree.command(name="opt-in", description="Let me hear you again after /opt-out.")
    @app_commands.guild_only()
    async def opt_in(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, _set_opt_out(participation, interaction, out=False))


async def _be_quiet(participation: GuildStates, interaction: discord.Interaction, *, minutes: int | None) -> Text:
    await participation.silence_for_now(guild_id_of(interaction), by=interaction.user.id, minutes=minutes)
    if minutes is None:
        return Text("I am silent until somebody uses /talk or this session ends. I still listen.")
    return silenced_for(minutes)


async def _be_silent(participation: GuildStates, interaction: discord.Interaction) -> Text:
    await participation.silence_always(guild_id_of(interaction), by=interaction.user.id)
    return Text("I am silent on this server until a server manager uses /talk. I still listen in my voice channel.")


async def _let_talk(participation: GuildStates, tree: CheckedCommandTree, interaction: discord.Interaction) -> Text:
    """Let the bot speak again, for /talk and its button."""
    by, manager = interaction.user.id, tree.user_of(interaction).is_manager
    may_speak = await participation.lift_silence(guild_id_of(interaction), by=by, manager=manager)
    return MAY_SPEAK if may_speak else SILENCED_FOR_GOOD


async def _set_opt_out(participation: GuildStates, interaction: discord.Interaction, *, out: bool) -> Text:
    guild_id, person_id = guild_id_of(interaction), interaction.user.id
    problem: str = ""
    try:
        await participation.set_opt_out(guild_id, person_id, out=out)
    except NotStoredError as error:
        problem = failure_sentence(error)
    if out:
        sentence = Text(
            "I no longer hear you on this server. I throw away the sound of your voice. To change this, use /opt-in."
        )
        forgets = Text("I no longer use what you said before. To delete it on all servers, use /forget-me.")
        return joined((sentence, problem or forgets))
    if participation.must_agree(guild_id, person_id):
        sentence = Text(
            "Your /opt-out on this server is over. But I hear you only if you press *Hear me* below "
            "my notice. Do this in each session."
        )
    else:
        sentence = Text("I hear you again on this server.")
    return joined((sentence, problem))


def talk_button(participation: GuildStates, tree: CheckedCommandTree, language: str) -> CheckedView:
    """Return the button *Talk again*, below the sentence that the bot is silent. It does what /talk does, for the same
    people.
    """

    async def press(interaction: discord.Interaction) -> None:
        await answer_when_known(interaction, _let_talk(participation, tree, interaction))

    view = CheckedView(tree, "talk")
    view.add_button("roomtone:talk-again", in_language(TALK_AGAIN, language), press)
    return view


def consent_buttons(participation: GuildStates, tree: CheckedCommandTree, language: str) -> AnsweringView:
    """Return the buttons below a notice that asks. Agreeing counts as /opt-in; nobody waits to be heard no more."""

    async def choose(interaction: discord.Interaction, *, agrees: bool) -> Text:
        guild_id = guild_id_of(interaction)
        here = tree.rooms.room_channel_of(guild_id)
        if here is None or here.channel_id != interaction.channel_id:
            return NOT_LISTENING_HERE
        await participation.set_agreed(guild_id, interaction.user.id, agrees=agrees)
        return HEARD if agrees else NOT_HEARD

    async def press(interaction: discord.Interaction, *, agrees: bool) -> None:
        if not agrees or await tree.may_use(interaction, command="opt-in"):
            await answer_when_known(interaction, choose(interaction, agrees=agrees))

    view = AnsweringView(timeout=None)
    green = discord.ButtonStyle.success
    view.add_button("roomtone:hear-me", in_language(HEAR_ME, language), partial(press, agrees=True), style=green)
    view.add_button("roomtone:do-not-hear-me", in_language(DO_NOT_HEAR_ME, language), partial(press, agrees=False))
    return view
