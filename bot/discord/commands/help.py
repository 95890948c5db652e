"""The slash command /help: what the person who asks may do, from the table of `bot.discord.access`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discord import app_commands

from bot.discord.access import RULES, Who, refusal
from bot.discord.answers import Field, answer, embed_in, language_of
from bot.texts.catalogue import catalogue
from bot.texts.text import Text, counted, in_language, joined, verbatim

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import discord

    from bot.discord.access import CommandUser
    from bot.discord.command_tree import CheckedCommandTree

# The headings, and the commands and groups below each. A command that is in none is under the last.
MORE = Text("More")
SECTIONS: Mapping[Text, Sequence[str]] = {
    Text("Calling me"): ("join", "leave", "status", "listen"),
    Text("What was said"): ("recap", "catch-up", "recall", "transcript", "rolling-context"),
    Text("When and how I speak"): ("quiet", "talk", "voice-mode", "wake-names", "voice", "persona"),
    Text("Your words"): ("opt-out", "opt-in", "privacy", "my-data", "forget-me", "memory"),
    Text("Shared screens"): ("watch",),
    MORE: (),
}
# Whom a command is for, besides members. Who reads it is one of them.
_FOR: Mapping[Who, Text] = {
    Who.PRESENT: Text("in my voice channel"),
    Who.PRESENT_OR_MODERATORS: Text("in my voice channel, and moderators"),
    Who.MODERATORS: Text("moderators"),
    Who.MANAGERS: Text("server managers"),
}
# A group with more commands is one line, so that all commands fit into one embed.
_LONGEST_GROUP = 4
# Discord's limit for a field of an embed; a longer section goes on in another field.
_FIELD_CHARS = 1_024


def add_help(tree: CheckedCommandTree) -> None:
    """Put /help on `tree`. It tells of all commands that are on the tree when somebody asks."""

    @tree.command(name="help", description="See what you can do with me here.")
    @app_commands.guild_only()
    async def help_command(interaction: discord.Interaction) -> None:
        await answer(interaction, verbatim(""), embed=help_embed(tree, interaction))


def help_embed(tree: CheckedCommandTree, interaction: discord.Interaction) -> discord.Embed:
    """Return the commands that the person may use now, in their language."""
    language, user = language_of(interaction), tree.user_of(interaction)
    commands = [each for each in tree.walk_commands() if isinstance(each, app_commands.Command)]
    # Discord hides from people what their permissions in this channel do not allow by default.
    shown = [each for each in commands if _is_shown(each.qualified_name, interaction)]
    usable = [each for each in shown if refusal(each.qualified_name, (), user) is None]
    fields: list[Field] = []
    for heading, lines in _sections(usable, user, language):
        fields += (Field(heading, verbatim(text)) for text in _in_fields(lines))
    others = counted(
        len(commands) - len(usable),
        "One more command is for other people, or for when you are in my voice channel.",
        "{count} more commands are for other people, or for when you are in my voice channel.",
    )
    about = Text(
        "I listen in voice channels, remember what is said, and answer when I am called by name. You can use these "
        "commands; only you see the answers."
    )
    told = joined((about, others if len(usable) < len(commands) else ""))
    return embed_in(language, title=Text("What you can do"), text=told, fields=fields)


def _is_shown(name: str, interaction: discord.Interaction) -> bool:
    default = RULES[name].default
    return default is None or default <= interaction.permissions


def _sections(
    commands: Iterable[app_commands.Command[Any, ..., Any]], user: CommandUser, language: str
) -> Iterator[tuple[Text, list[str]]]:
    """Yield the headings that have a command, each with its lines."""
    heading_of = {name: heading for heading, names in SECTIONS.items() for name in names}
    order = {name: place for place, name in enumerate(heading_of)}
    found: dict[Text, dict[str, list[app_commands.Command[Any, ..., Any]]]] = {heading: {} for heading in SECTIONS}
    for command in commands:
        first = command.qualified_name.split()[0]
        found[heading_of.get(first, MORE)].setdefault(first, []).append(command)
    for heading, groups in found.items():
        lines: list[str] = []
        for first in sorted(groups, key=lambda name: (order.get(name, 0), name)):
            lines += _group_lines(groups[first], user, language)
        if lines:
            yield heading, lines


def _group_lines(
    commands: Sequence[app_commands.Command[Any, ..., Any]], user: CommandUser, language: str
) -> list[str]:
    group = commands[0].parent
    if group is None or len(commands) <= _LONGEST_GROUP:
        return [_line(each, user, language) for each in commands]
    known = catalogue(language)
    names = ", ".join(known.commands.get(each.name, each.name) for each in commands)
    who = {RULES[each.qualified_name].who for each in commands}
    for_whom = _people(who.pop(), language) if len(who) == 1 else ""
    return [f"**/{_name(group.name, language)}**{for_whom}: {names}"]


def _line(command: app_commands.Command[Any, ..., Any], user: CommandUser, language: str) -> str:
    rule = RULES[command.qualified_name]
    known = catalogue(language)
    described = known.texts.get(command.description, command.description)
    restricted: dict[Who, list[str]] = {}
    for option, who in rule.options.items():
        if user.is_one_of(who):
            restricted.setdefault(who, []).append(f"`{known.commands.get(option, option)}`")
    # Options that the person may not use are none of their business.
    options = "".join(
        f" *{', '.join(names)}: {in_language(_FOR[who], language)}*" for who, names in restricted.items() if who in _FOR
    )
    return f"**/{_name(command.qualified_name, language)}**{_people(rule.who, language)}: {described}{options}"


def _name(name: str, language: str) -> str:
    known = catalogue(language)
    return " ".join(known.commands.get(word, word) for word in name.split())


def _people(who: Who, language: str) -> str:
    return f" *({in_language(_FOR[who], language)})*" if who in _FOR else ""


def _in_fields(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines in as few texts as fit into a field each."""
    kept: list[str] = []
    for line in lines:
        if kept and sum(map(len, kept)) + len(kept) + len(line) > _FIELD_CHARS:
            yield "\n".join(kept)
            kept = []
        kept.append(line)
    if kept:
        yield "\n".join(kept)
