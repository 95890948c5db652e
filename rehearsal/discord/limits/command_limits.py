"""What Discord refuses when a bot registers its commands. One mistake refuses all of them, and the bot has none.

Source: Discord's reference, "Application Command Structure" and "Registering a Command".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.discord.limits.message_limits import refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rehearsal.discord.guild.payloads import Json

_CHAT_INPUT = 1
_MOST_COMMANDS = 100
_MOST_OPTIONS = 25
_MOST_CHOICES = 25
_MAX_NAME = 32
_MAX_DESCRIPTION = 100
_MAX_CHOICE = 100
# Of the names, descriptions and choices of one command, its subcommands and its options together.
_MAX_COMMAND_CHARACTERS = 8000


def check_commands(commands: Iterable[Json]) -> None:
    """Raise `RefusedError` if Discord would refuse one of these commands."""
    listed = list(commands)
    if sum(command.get("type", _CHAT_INPUT) == _CHAT_INPUT for command in listed) > _MOST_COMMANDS:
        raise refusal(f"a bot has at most {_MOST_COMMANDS} commands")
    for command in listed:
        if command.get("type", _CHAT_INPUT) != _CHAT_INPUT:
            continue
        _check_described(command, f"/{command.get('name')}")
        if _characters(command) > _MAX_COMMAND_CHARACTERS:
            raise refusal(f"/{command['name']} has more than {_MAX_COMMAND_CHARACTERS} characters")


def _check_described(declared: Json, place: str) -> None:
    """Check a command, a subcommand or an option, and what is below it."""
    for name in _texts(declared, "name"):
        signs = isinstance(name, str) and all(sign in "-_'" or sign.isalnum() for sign in name)
        if not signs or not 1 <= len(name) <= _MAX_NAME or name != name.lower():
            raise refusal(f"the name {name!r} of {place} has 1 to {_MAX_NAME} small letters, digits, - or _")
    for description in _texts(declared, "description"):
        if not isinstance(description, str) or not 1 <= len(description) <= _MAX_DESCRIPTION:
            raise refusal(f"the description of {place} has 1 to {_MAX_DESCRIPTION} characters")
    options = declared.get("options") or []
    names = [option.get("name") for option in options]
    if len(options) > _MOST_OPTIONS or len(set(names)) < len(names):
        raise refusal(f"{place} has at most {_MOST_OPTIONS} options, each with its own name")
    required = [bool(option.get("required")) for option in options]
    if required != sorted(required, reverse=True):
        raise refusal(f"the required options of {place} come first")
    for option in options:
        _check_described(option, f"{place} {option.get('name')}")
    _check_choices(declared.get("choices") or [], place)


def _check_choices(choices: list[Json], place: str) -> None:
    if len(choices) > _MOST_CHOICES:
        raise refusal(f"{place} has at most {_MOST_CHOICES} choices")
    for choice in choices:
        value = choice.get("value")
        texts = [*_texts(choice, "name"), *([value] if isinstance(value, str) else [])]
        if any(not isinstance(text, str) or not 1 <= len(text) <= _MAX_CHOICE for text in texts):
            raise refusal(f"a choice of {place} has 1 to {_MAX_CHOICE} characters")


def _texts(declared: Json, key: str) -> list[Any]:
    """Return a text of a command in all its languages; the text itself first."""
    return [declared.get(key), *(declared.get(f"{key}_localizations") or {}).values()]


def _characters(declared: Json) -> int:
    """Count the characters of a command. Of each text, the longest language counts."""
    own = sum(max(len(text or "") for text in _texts(declared, key)) for key in ("name", "description"))
    return own + sum(_characters(each) for each in _below(declared))


def _below(declared: Json) -> Iterator[Json]:
    yield from declared.get("options") or []
    for choice in declared.get("choices") or []:
        # A choice is sent by its value, which counts as a description does.
        yield {**choice, "description": str(choice.get("value", ""))}
