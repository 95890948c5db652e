"""What Discord refuses of messages and of commands: what is too long or too many, and big files.

One mistake in one command refuses all of them, and the bot has none. Source: Discord's reference, "Application Command
Structure" and "Registering a Command".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rehearsal.discord.guild.payloads import Json


class RefusedError(LocalDiscordError):
    """Refuses a bot's request with Discord's HTTP status and error code."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


# The files of one message on a server without boosts. An interaction tells it as `attachment_size_limit`.
MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024
_MAX_CHARACTERS = 2000
_EMPTY = (400, 50006, "Cannot send an empty message")
_TOO_LARGE = (413, 40005, "Request entity too large")
# What a message has besides its flags, and what each of it is when it is taken away.
_PARTS: dict[str, object] = {"content": "", "embeds": [], "components": [], "attachments": []}


def new_message_fields(data: Json) -> Json:
    """Return what a new message has besides its text. Raises `RefusedError` for one that Discord would refuse."""
    check_message(data)
    fields = {key: data[key] for key in ("embeds", "components", "attachments", "flags") if data.get(key)}
    if not data.get("content") and not fields.keys() - {"flags"}:
        raise RefusedError(*_EMPTY)
    return fields


def edit_message(message: Json, data: Json) -> None:
    """Change what `data` names of a message. A part that is null is taken away, as on Discord.

    Raises `RefusedError`, and changes nothing, if Discord would refuse the edit or nothing would be left.
    """
    check_message(data)
    changes = {key: data[key] or empty for key, empty in _PARTS.items() if key in data}
    if not any({**message, **changes}[key] for key in _PARTS):
        raise RefusedError(*_EMPTY)
    message.update(changes)


def check_message(data: Json) -> None:
    """Raise `RefusedError` if Discord would refuse a part of a new or edited message."""
    check_content(data.get("content"))
    check_embeds(data.get("embeds"))
    check_components(data.get("components"))
    files = data.get("attachments") or []
    if sum(file.get("size", 0) for file in files) > MAX_ATTACHMENT_BYTES:
        raise RefusedError(*_TOO_LARGE)


def refusal(what: str) -> RefusedError:
    """Return Discord's refusal of a request whose form is wrong."""
    return RefusedError(400, 50035, f"Invalid Form Body: {what}.")


def check_content(content: object) -> None:
    """Raise `RefusedError` for a text that Discord would refuse."""
    if content is not None and (not isinstance(content, str) or len(content) > _MAX_CHARACTERS):
        raise refusal(f"content must be {_MAX_CHARACTERS} or fewer in length")


def _check_size(key: str, part: str | list[Json], most: int) -> None:
    """Raise `RefusedError` for a text that is too long, or a list of too many."""
    if len(part) > most:
        raise refusal(f"{key} must be {most} or fewer in length")


def _check_texts(part: Json, limits: Mapping[str, int]) -> int:
    """Check the texts that a part has under these keys. Return their length together."""
    for key, most in limits.items():
        _check_size(key, part.get(key) or "", most)
    return sum(len(part.get(key) or "") for key in limits)


_MOST_EMBEDS, _MOST_FIELDS, _MOST_EMBED_CHARACTERS = 10, 25, 6000
_EMBED_LIMITS = {"title": 256, "description": 4096, "footer": 2048, "author": 256}
_FIELD_LIMITS = {"name": 256, "value": 1024}


def check_embeds(embeds: Any) -> None:
    """Raise `RefusedError` for embeds that Discord would refuse."""
    _check_size("embeds", embeds or [], _MOST_EMBEDS)
    total = 0
    for embed in embeds or []:
        fields = embed.get("fields") or []
        _check_size("fields", fields, _MOST_FIELDS)
        if any(not each.get(key) for each in fields for key in _FIELD_LIMITS):
            raise refusal("a field needs a name and a value")
        footer, author = (embed.get("footer") or {}).get("text"), (embed.get("author") or {}).get("name")
        total += _check_texts({**embed, "footer": footer, "author": author}, _EMBED_LIMITS)
        total += sum(_check_texts(each, _FIELD_LIMITS) for each in fields)
    if total > _MOST_EMBED_CHARACTERS:
        raise refusal(f"embeds exceed {_MOST_EMBED_CHARACTERS} characters")


_ACTION_ROW = 1
_MOST_ROWS, _MOST_IN_A_ROW, _MOST_CHOICES = 5, 5, 25
_MAX_CUSTOM_ID, _MAX_CHOICE_CHARACTERS = 100, 100
_COMPONENT_LIMITS = {"label": 80, "placeholder": 150}
_OPTION_LIMITS = {"label": 100, "value": 100, "description": 100}


def check_components(components: list[Json] | None) -> None:
    """Raise `RefusedError` for rows of buttons and menus that Discord would refuse."""
    _check_size("components", components or [], _MOST_ROWS)
    ids: list[str] = []
    for row in components or []:
        inside = row.get("components") or []
        if row.get("type") != _ACTION_ROW or not 1 <= len(inside) <= _MOST_IN_A_ROW:
            raise refusal(f"a row has 1 to {_MOST_IN_A_ROW} components")
        for each in inside:
            _check_texts(each, _COMPONENT_LIMITS)
            _check_options(each)
        ids += [each["custom_id"] for each in inside if each.get("custom_id") is not None]
    if any(not 1 <= len(each) <= _MAX_CUSTOM_ID for each in ids):
        raise refusal(f"custom_id has 1 to {_MAX_CUSTOM_ID} characters")
    if len(set(ids)) < len(ids):
        raise refusal("Component custom id cannot be duplicated")


def _check_options(menu: Json) -> None:
    options = menu.get("options") or []
    for each in options:
        _check_texts(each, _OPTION_LIMITS)
    if len(options) > _MOST_CHOICES or sum(bool(each.get("default")) for each in options) > menu.get("max_values", 1):
        raise refusal(f"a menu has at most {_MOST_CHOICES} options")


def check_window(window: Json) -> None:
    """Raise `RefusedError` for a window (modal) that Discord would refuse."""
    _check_texts(window, {"title": 45})
    for label in window.get("components") or []:
        _check_texts(label, {"label": 45, "description": 100})


def check_choices(choices: list[Json] | None) -> list[Json]:
    """Return the choices that a bot suggests. Raises `RefusedError` for those that Discord would refuse."""
    _check_size("choices", choices or [], _MOST_CHOICES)
    texts = [text for each in choices or [] for text in (each["name"], each["value"]) if isinstance(text, str)]
    if any(not 1 <= len(text) <= _MAX_CHOICE_CHARACTERS for text in texts):
        raise refusal(f"a choice has 1 to {_MAX_CHOICE_CHARACTERS} characters")
    return choices or []


_CHAT_INPUT = 1
_MOST_COMMANDS = 100
_MOST_OPTIONS = 25
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
