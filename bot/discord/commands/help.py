"""The slash command /help: what to say, and what the person who asks may do, from the table of `bot.discord.access`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discord import app_commands

from bot.channel.markdown import COMMAND_LINKS
from bot.discord.access import RULES, Who, refusal
from bot.discord.answers import FIELD_CHARS, Answer, answer, embed_in, guild_id_of, language_of
from bot.discord.posting import message_parts
from bot.texts.text import Text, catalogue, counted, in_language, joined, verbatim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import discord

    from bot.discord.command_tree import CheckedCommandTree
    from bot.participation.guild_state import GuildStates

SAY = Text(
    "I am {name}. Say in my voice channel:\n- *{name}, what have we decided?*\n"
    "- *{name}, what do you know about Lisbon?*\n- *{name}, be quiet.*"
)
# Whom a command is for, besides members. Who reads it is one of them.
_FOR: Mapping[Who, Text] = {
    Who.PRESENT: Text("people in my voice channel"),
    Who.PRESENT_OR_MANAGERS: Text("people in my voice channel, and server managers"),
    Who.MANAGERS: Text("server managers"),
}


def add_help(tree: CheckedCommandTree, *, participation: GuildStates) -> None:
    """Put /help on `tree`. It tells of all commands that are on the tree when somebody asks. `participation`: knows
    what the bot is called on a server.
    """

    @tree.command(name="help", description="See what you can do with me here.")
    @app_commands.guild_only()
    async def help_command(interaction: discord.Interaction) -> None:
        name = participation.names_of(guild_id_of(interaction))[0]
        await answer(interaction, Answer(embed=help_embed(tree, interaction, name)))


def help_embed(tree: CheckedCommandTree, interaction: discord.Interaction, name: str) -> discord.Embed:
    """Return what to say to the bot, and the commands that the person may use now, in their language."""
    language, user = language_of(interaction), tree.user_of(interaction)
    commands = [each for each in tree.walk_commands() if isinstance(each, app_commands.Command)]
    # Discord hides from people what their permissions in this channel do not allow by default.
    shown = [each for each in commands if _is_shown(each.qualified_name, interaction)]
    usable = [each for each in shown if refusal(each.qualified_name, user) is None]
    fields = [
        (heading, verbatim(text))
        for heading, lines in _sections(usable, language).items()
        # A longer section goes on in another field.
        for text in message_parts("\n".join(lines), most_chars=FIELD_CHARS)
    ]
    others = counted(
        len(commands) - len(usable),
        "There is one more command. You can use it only in my voice channel, or it is only for other people.",
        "There are {count} more commands. You can use them only in my voice channel, or they are "
        "only for other people.",
    )
    about = Text(
        "I listen in voice channels, remember what is said, and answer if somebody says my name. You "
        "can use these commands. Only you see the answers."
    )
    listed = joined((about, others if len(usable) < len(commands) else ""))
    return embed_in(
        language, title=Text("What you can do"), text=joined((SAY.fill(name=name), listed), "\n\n"), fields=fields
    )


def _is_shown(name: str, interaction: discord.Interaction) -> bool:
    default = RULES[name].default
    return default is None or default <= interaction.permissions


def _sections(commands: Sequence[app_commands.Command[Any, ..., Any]], language: str) -> Mapping[Text, Sequence[str]]:
    """Return the lines of these commands below their headings."""
    named, found = {each.qualified_name: each for each in commands}, dict[Text, list[str]]()
    for name in filter(named.__contains__, RULES):
        found.setdefault(RULES[name].heading, []).append(_line(named[name], language))
    return found


def _line(command: app_commands.Command[Any, ..., Any], language: str) -> str:
    who = RULES[command.qualified_name].who
    people = f" *({in_language(_FOR[who], language)})*" if who in _FOR else ""
    known = catalogue(language)
    name = " ".join(known.commands.get(word, word) for word in command.qualified_name.split())
    called = COMMAND_LINKS.link(f"/{name}", language)
    return f"**{called}**{people}: {known.texts.get(command.description, command.description)}"
