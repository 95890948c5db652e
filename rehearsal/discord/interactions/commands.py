"""Turns a slash command that a person types into the data of an INTERACTION_CREATE event.

The functions find the registered command and check its options. They are pure. A mistake raises `LocalDiscordError`,
which lists the options that the command takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

from rehearsal.discord.guild import payloads, permissions
from rehearsal.discord.guild.granted import permission_bits
from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.guild.spec import GuildSpec
from rehearsal.discord.guild.state import ROLE_MENU, USER_MENU
from rehearsal.errors import LocalDiscordError


class OptionType(IntEnum):
    """Discord's application command option types."""

    SUB_COMMAND = 1
    SUB_COMMAND_GROUP = 2
    STRING = 3
    INTEGER = 4
    BOOLEAN = 5
    USER = 6
    CHANNEL = 7
    ROLE = 8
    MENTIONABLE = 9
    NUMBER = 10
    ATTACHMENT = 11


_NESTING = (OptionType.SUB_COMMAND, OptionType.SUB_COMMAND_GROUP)
_CHAT_INPUT = 1


def build_invocation(
    guild: GuildSpec,
    registered: Iterable[tuple[int, Json]],
    *,
    user_id: int,
    name: str,
    options: Mapping[str, Any],
) -> tuple[int, Json]:
    """Return the application of `/name` and the data of its INTERACTION_CREATE event. Subcommands are further words in
    the name, as in `memory me`.

    Raises `LocalDiscordError` for an unknown command, a command that the member may not use, or wrong options.
    """
    words, application_id, command = _allowed(guild, registered, name, user_id)
    resolved: dict[str, dict[str, Json]] = {}
    data: Json = {
        "id": command["id"],
        "name": command["name"],
        "type": _CHAT_INPUT,
        "options": _nested(guild, command, words[1:], options, resolved),
    }
    if "guild_id" in command:
        data["guild_id"] = command["guild_id"]
    if resolved:
        data["resolved"] = resolved
    return application_id, data


def build_suggestion(
    guild: GuildSpec,
    registered: Iterable[tuple[int, Json]],
    *,
    user_id: int,
    name: str,
    option: str,
    typed: str,
) -> tuple[int, Json]:
    """Return the application and what Discord sends while a member types into an option of `/name`.

    Raises `LocalDiscordError`.
    """
    words, application_id, command = _allowed(guild, registered, name, user_id)
    declared: Json = command
    for word in words[1:]:
        declared = next((each for each in declared.get("options") or [] if each["name"] == word), {})
    typing: Json = next((each for each in declared.get("options") or [] if each["name"] == option), {})
    if not typing.get("autocomplete"):
        raise LocalDiscordError(f"/{name} suggests nothing for the option {option!r}.")
    options: list[Json] = [{"name": option, "type": typing["type"], "value": typed, "focused": True}]
    for word in reversed(words[1:]):
        options = [{"name": word, "type": OptionType.SUB_COMMAND, "options": options}]
    data: Json = {"id": command["id"], "name": command["name"], "type": _CHAT_INPUT, "options": options}
    return application_id, data


def resolved_picks(guild: GuildSpec, menu: int, picked: Iterable[str]) -> dict[str, dict[str, Json]]:
    """Return what Discord tells of the people, roles or channels that somebody picked in a menu."""
    option = {
        "name": "menu",
        "type": {USER_MENU: OptionType.USER, ROLE_MENU: OptionType.ROLE}.get(menu, OptionType.CHANNEL),
    }
    resolved: dict[str, dict[str, Json]] = {}
    for each in picked:
        _value(guild, option, each, resolved)
    return resolved


def _allowed(
    guild: GuildSpec, registered: Iterable[tuple[int, Json]], name: str, user_id: int
) -> tuple[list[str], int, Json]:
    """Return the words of `/name`, and the application and the command that it is, if the member may use it."""
    words = name.removeprefix("/").split()
    # The first of a name goes before the others.
    listed = [each for each in registered if each[1]["type"] == _CHAT_INPUT]
    known = {command["name"]: (of, command) for of, command in reversed(listed)}
    if not words or words[0] not in known:
        there = ", ".join(f"/{each}" for each in sorted(known)) or "none yet"
        raise LocalDiscordError(f"No bot has registered /{' '.join(words)}. Registered commands: {there}.")
    application_id, command = known[words[0]]
    needed = command.get("default_member_permissions") or 0
    if int(needed) & ~permission_bits(guild, user_id):
        name = guild.member(user_id).name
        raise LocalDiscordError(f"{name} lacks a permission that /{command['name']} asks for (bits {needed}).")
    return words, application_id, command


def _nested(
    guild: GuildSpec, command: Json, words: list[str], options: Mapping[str, Any], resolved: dict[str, dict[str, Json]]
) -> list[Json]:
    declared = {option["name"]: option for option in command.get("options") or []}
    below = {name: option for name, option in declared.items() if option["type"] in _NESTING}
    if not words:
        if below:
            raise LocalDiscordError(f"/{command['name']} needs one of its subcommands: {', '.join(sorted(below))}.")
        return _filled(guild, command["name"], declared, options, resolved)
    if words[0] not in below:
        there = ", ".join(sorted(below)) or "none"
        raise LocalDiscordError(f"/{command['name']} has no subcommand {words[0]!r}. It has {there}.")
    inner = below[words[0]]
    filled = _nested(guild, inner, words[1:], options, resolved)
    return [{"name": inner["name"], "type": inner["type"], "options": filled}]


def _filled(
    guild: GuildSpec,
    name: str,
    declared: Mapping[str, Json],
    options: Mapping[str, Any],
    resolved: dict[str, dict[str, Json]],
) -> list[Json]:
    unknown = sorted(set(options) - set(declared))
    if unknown:
        there = ", ".join(declared) or "none"
        raise LocalDiscordError(f"/{name} has no option {unknown[0]!r}. Its options: {there}.")
    missing = [key for key, option in declared.items() if option.get("required") and key not in options]
    if missing:
        raise LocalDiscordError(f"/{name} needs the option {missing[0]!r}.")
    return [
        {"name": key, "type": declared[key]["type"], "value": _value(guild, declared[key], value, resolved)}
        for key, value in options.items()
    ]


def _value(guild: GuildSpec, option: Json, value: Any, resolved: dict[str, dict[str, Json]]) -> Any:
    kind = OptionType(option["type"])
    choices = [choice["value"] for choice in option.get("choices") or []]
    if choices and value not in choices:
        raise LocalDiscordError(f"{option['name']} is one of {', '.join(map(str, choices))}; {value!r} is not.")
    if kind in (OptionType.USER, OptionType.MENTIONABLE):
        return _resolve_user(guild, int(value), resolved)
    if kind is OptionType.CHANNEL:
        return _resolve_channel(guild, int(value), resolved)
    if kind is OptionType.ROLE:
        role = next((each for each in payloads.roles(guild) if each["id"] == str(value)), None)
        if role is None:
            raise LocalDiscordError(f"The guild has no role {value}.")
        resolved.setdefault("roles", {})[role["id"]] = role
        return role["id"]
    accepted_types: dict[OptionType, tuple[type, ...]] = {
        OptionType.STRING: (str,),
        OptionType.INTEGER: (int,),
        OptionType.BOOLEAN: (bool,),
        OptionType.NUMBER: (int, float),
    }
    fits = isinstance(value, accepted_types.get(kind, ())) and (
        kind is OptionType.BOOLEAN or not isinstance(value, bool)
    )
    if not fits:
        raise LocalDiscordError(f"{option['name']} takes a value of type {kind.name.lower()}; {value!r} is not one.")
    _check_bounds(option, value)
    return value


def _check_bounds(option: Json, value: Any) -> None:
    """Refuse a number or a length outside of what the bot has declared, as Discord does."""
    text = isinstance(value, str)
    least, most = ("min_length", "max_length") if text else ("min_value", "max_value")
    size, unit = (len(value), " characters") if text else (value, "")
    if least in option and size < option[least]:
        raise LocalDiscordError(f"{option['name']} takes at least {option[least]}{unit}, not {size}.")
    if most in option and size > option[most]:
        raise LocalDiscordError(f"{option['name']} takes at most {option[most]}{unit}, not {size}.")


def _resolve_user(guild: GuildSpec, user_id: int, resolved: dict[str, dict[str, Json]]) -> str:
    member = payloads.guild_member(guild, user_id)
    user = member.pop("user")
    resolved.setdefault("users", {})[user["id"]] = user
    bits = str(permission_bits(guild, user_id))
    resolved.setdefault("members", {})[user["id"]] = {**member, "permissions": bits}
    return str(user_id)


def _resolve_channel(guild: GuildSpec, channel_id: int, resolved: dict[str, dict[str, Json]]) -> str:
    spec = next((each for each in guild.channels if each.id == channel_id), None)
    if spec is None:
        raise LocalDiscordError(f"The guild has no channel {channel_id}.")
    channel = {**payloads.channel(guild, spec), "permissions": str(permissions.ALL)}
    resolved.setdefault("channels", {})[str(channel_id)] = channel
    return str(channel_id)
