"""Refuses what Discord refuses of messages, commands and windows: what its specification says, and the limits that the
specification does not know.

One mistake in one command refuses all of them, and the bot has none. Sources: Discord's reference, "Application Command
Structure", "Registering a Command" and "Component Reference"; the codes are those that people have reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rehearsal.discord.guild.payloads import Json, message_parts
from rehearsal.discord.specification import FormMistake, FormPlace, mistakes_in
from rehearsal.errors import LocalDiscordError


class RefusedError(LocalDiscordError):
    """Refuses a bot's request with Discord's HTTP status and error code. `errors`: the mistakes by their place."""

    def __init__(self, status: int, code: int, message: str, errors: Json | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.errors = errors


# The files of one message on a server without boosts. An interaction tells it as `attachment_size_limit`.
MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024
_SUPPRESS_EMBEDS = 1 << 2
# Discord unfolds no address in angle brackets.
_ADDRESS = re.compile(r"(?<!<)https?://[^\s<>]+")
_EMPTY = (400, 50006, "Cannot send an empty message")
_TOO_LARGE = (413, 40005, "Request entity too large")
_TOO_MANY_COMMANDS = (400, 30032, "Maximum number of application commands reached (100)")


def check_request(key: str, body: Any) -> None:
    """Raise `RefusedError` for a body that Discord would refuse. `key`: see `specification.route_key`."""
    mistakes = mistakes_in(key, "request", body)
    if not mistakes and key in _LIMITS:
        mistakes = list(_LIMITS[key](body))
    if mistakes:
        raise refusal(mistakes)


def refusal(mistakes: Iterable[FormMistake]) -> RefusedError:
    """Return Discord's refusal of a request whose form is wrong."""
    errors: Json = {}
    for place, code, message in mistakes:
        part = errors
        for step in place:
            part = part.setdefault(str(step), {})
        part.setdefault("_errors", []).append({"code": code, "message": message})
    return RefusedError(400, 50035, "Invalid Form Body", errors)


def new_message_fields(data: Json) -> Json:
    """Return what a new message has besides its text. Raises `RefusedError` for one without anything to read."""
    parts = {**message_parts(data), "attachments": _new_files(data), "flags": data.get("flags")}
    fields = {key: part for key, part in parts.items() if part and key != "content"}
    if not (data.get("content") or "").strip() and not fields.keys() - {"flags"}:
        raise RefusedError(*_EMPTY)
    fields["embeds"] = _shown_embeds({**fields, "content": data.get("content")})
    return fields


def edit_message(message: Json, data: Json) -> None:
    """Change what `data` names of a message. A part that is null is taken away, as on Discord.

    Raises `RefusedError`, and changes nothing, if nothing would be left.
    """
    changes = message_parts(data)
    if "attachments" in changes:
        kept = {str(each["id"]) for each in changes["attachments"]}
        changes["attachments"] = [each for each in message["attachments"] if each["id"] in kept] + _new_files(data)
    if data.get("flags") is not None:
        changes["flags"] = message["flags"] & ~_SUPPRESS_EMBEDS | data["flags"]
    left = {**message, **changes}
    if not left["content"].strip() and not any(left[key] for key in ("embeds", "components", "attachments")):
        raise RefusedError(*_EMPTY)
    message.update({**changes, "embeds": _shown_embeds(left)})


def _shown_embeds(message: Json) -> list[Json]:
    """Return the embeds that people see: none if the message hides them, else its own, or its first link, unfolded."""
    embeds: list[Json] = message.get("embeds") or []
    if (message.get("flags") or 0) & _SUPPRESS_EMBEDS:
        return []
    link = _ADDRESS.search(message.get("content") or "")
    return [{"type": "link", "url": link[0]}] if link and not embeds else embeds


def _new_files(data: Json) -> list[Json]:
    """Return the files that came with a message. Raises `RefusedError` if they are too large."""
    files = [each for each in data.get("attachments") or () if "url" in each]
    if sum(each["size"] for each in files) > MAX_ATTACHMENT_BYTES:
        raise RefusedError(*_TOO_LARGE)
    return files


def _below(place: FormPlace, mistakes: Iterable[FormMistake]) -> Iterator[FormMistake]:
    return (each._replace(place=(*place, *each.place)) for each in mistakes)


def _required(*place: str | int) -> FormMistake:
    return FormMistake(place, "BASE_TYPE_REQUIRED", "This field is required")


# --- messages ------------------------------------------------------------------------------------------------------

_MAX_CHARACTERS, _MAX_EMBED_CHARACTERS, _MOST_ROWS = 2000, 6000, 5
_COMPONENTS_V2 = 1 << 15
_ROW, _BUTTON, _OWN_MENU, _INPUT = 1, 2, 3, 4
_MENUS = (_OWN_MENU, 5, 6, 7, 8)
_LINK, _PREMIUM = 5, 6
# What an embed can show without a text of its own.
_SHOWN = ("fields", "footer", "author", "image", "thumbnail", "video")


def _message_mistakes(data: Json) -> Iterator[FormMistake]:
    if len(data.get("content") or "") > _MAX_CHARACTERS:
        yield FormMistake(("content",), "BASE_TYPE_MAX_LENGTH", f"Must be {_MAX_CHARACTERS} or fewer in length.")
    mentions = data.get("allowed_mentions") or {}
    for kind in ("users", "roles"):
        if kind in (mentions.get("parse") or ()) and mentions.get(kind):
            yield FormMistake(
                ("allowed_mentions",),
                "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
                f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.',
            )
    texts: list[str] = []
    for number, embed in enumerate(data.get("embeds") or ()):
        fields = embed.get("fields") or ()
        own = [embed.get("title"), embed.get("description")]
        for part, key in (("footer", "text"), ("author", "name")):
            if embed.get(part) is not None:
                own.append(embed[part].get(key))
                if not own[-1]:
                    yield _required("embeds", number, part, key)
        if not any(embed.get(key) for key in _SHOWN) and not any(text and text.strip() for text in own):
            yield _required("embeds", number, "description")
        for at, each in enumerate(fields):
            yield from (
                _required("embeds", number, "fields", at, key) for key in ("name", "value") if not each[key].strip()
            )
        texts += [text for text in own if text] + [each[key] for each in fields for key in ("name", "value")]
    if sum(map(len, texts)) > _MAX_EMBED_CHARACTERS:
        yield FormMistake(
            ("embeds",), "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds maximum size of {_MAX_EMBED_CHARACTERS}"
        )
    rows = data.get("components") or ()
    if not (data.get("flags") or 0) & _COMPONENTS_V2:
        if len(rows) > _MOST_ROWS:
            yield FormMistake(("components",), "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {_MOST_ROWS} in length.")
        for number, row in enumerate(rows):
            if row["type"] != _ROW:
                yield FormMistake(
                    ("components", number, "type"),
                    "UNION_TYPE_CHOICES",
                    f'Value of field "type" must be one of ({_ROW},).',
                )
    yield from _component_mistakes(rows)


def _parts(components: Iterable[Json], place: FormPlace) -> Iterator[tuple[FormPlace, Json]]:
    """Yield each component with its place, and those inside it."""
    for number, part in enumerate(components):
        here = (*place, number)
        yield here, part
        yield from _parts(part.get("components") or (), (*here, "components"))
        yield from (((*here, key), part[key]) for key in ("accessory", "component") if part.get(key))


def _component_mistakes(components: Iterable[Json]) -> Iterator[FormMistake]:
    ids: set[str | None] = set()
    for place, part in _parts(components, ("components",)):
        custom_id = part.get("custom_id")
        if custom_id is not None and custom_id in ids:
            yield FormMistake(
                (*place, "custom_id"), "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated"
            )
        ids.update({custom_id} - {None})
        match part["type"]:
            case t if t == _ROW:
                inside = part.get("components") or ()
                if len(inside) > 1 and any(each["type"] in _MENUS for each in inside):
                    yield FormMistake(
                        place, "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width"
                    )
            case t if t == _BUTTON:
                yield from _below(place, _button_mistakes(part))
            case t if t in _MENUS:
                yield from _below(place, _order_mistakes(part, "min_values", "max_values", default_most=1))
                yield from _below(place, _option_mistakes(part))
            case t if t == _INPUT:
                yield from _below(place, _order_mistakes(part, "min_length", "max_length"))
                if len(part.get("value") or "") > (part.get("max_length") or _MAX_INPUT):
                    yield FormMistake(
                        (*place, "value"), "BASE_TYPE_MAX_LENGTH", f"Must be {part['max_length']} or fewer in length."
                    )


_MAX_INPUT = 4000


def _button_mistakes(button: Json) -> Iterator[FormMistake]:
    if button["style"] == _PREMIUM:
        return
    needed, forbidden = ("url", "custom_id") if button["style"] == _LINK else ("custom_id", "url")
    if not button.get(needed):
        yield _required(needed)
    if button.get(forbidden) is not None:
        yield FormMistake(
            (forbidden,), "BUTTON_COMPONENT_CUSTOM_ID_AND_URL", "A custom id and url cannot both be specified"
        )
    if not button.get("label") and not button.get("emoji"):
        yield FormMistake(("label",), "BUTTON_COMPONENT_NO_LABEL_OR_EMOJI", "A button must have a label or an emoji")


def _order_mistakes(part: Json, least: str, most: str, *, default_most: int | None = None) -> Iterator[FormMistake]:
    """Yield a least that is over the most. Without a most, there is `default_most`, or none."""
    low, high = part.get(least), default_most if part.get(most) is None else part[most]
    if low is not None and high is not None and low > high:
        yield FormMistake((least,), "NUMBER_TYPE_MAX", f"Value should be less than or equal to {high}.")


def _option_mistakes(menu: Json) -> Iterator[FormMistake]:
    options = menu.get("options") or ()
    values = [each["value"] for each in options]
    for number, value in enumerate(values):
        if value in values[:number]:
            yield FormMistake(
                ("options", number, "value"),
                "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED",
                "The specified option value is already used",
            )
    if sum(bool(each.get("default")) for each in options) > (menu.get("max_values") or 1):
        yield FormMistake(("options",), "SELECT_COMPONENT_TOO_MANY_DEFAULTS", "There are more defaults than max_values")


# --- answers to interactions ---------------------------------------------------------------------------------------

_AUTOCOMPLETE, _WINDOW = 8, 9


def _callback_mistakes(body: Json) -> Iterator[FormMistake]:
    data = body.get("data") or {}
    if body["type"] == _AUTOCOMPLETE:
        yield from _below(("data",), _choice_mistakes(data))
    elif body["type"] == _WINDOW:
        yield from _below(("data",), _component_mistakes(data["components"]))
    else:
        yield from _below(("data",), _message_mistakes(data))


# --- commands ------------------------------------------------------------------------------------------------------

_CHAT_INPUT = 1
_MOST_COMMANDS, _MAX_CHOICE = 100, 100
_NESTED = (1, 2)
# Of the names, descriptions and choices of one command, its subcommands and its options together.
_MAX_COMMAND_CHARACTERS = 8000


def _commands_mistakes(commands: list[Json] | None) -> Iterator[FormMistake]:
    seen: set[tuple[int, str]] = set()
    for number, command in enumerate(commands or ()):
        kind = command.get("type") or _CHAT_INPUT
        if (kind, command["name"]) in seen:
            yield FormMistake(
                (number, "name"), "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique"
            )
        seen.add((kind, command["name"]))
        if kind == _CHAT_INPUT:
            yield from _below((number,), _command_mistakes(command))
            if _characters(command) > _MAX_COMMAND_CHARACTERS:
                yield FormMistake(
                    (number,),
                    "APPLICATION_COMMAND_TOO_LARGE",
                    f"Command exceeds maximum size ({_MAX_COMMAND_CHARACTERS})",
                )
    if sum(kind == _CHAT_INPUT for kind, _ in seen) > _MOST_COMMANDS:
        raise RefusedError(*_TOO_MANY_COMMANDS)


def _command_mistakes(declared: Json) -> Iterator[FormMistake]:
    """Yield the mistakes in a command, a subcommand or an option, and below it."""
    names = {"name": [declared["name"]], "name_localizations": (declared.get("name_localizations") or {}).values()}
    for key, texts in names.items():
        for text in texts:
            if text != text.lower() or not all(sign in "-_'" or sign.isalnum() for sign in text):
                yield FormMistake((key,), "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
    if not (declared.get("description") or "").strip():
        yield _required("description")
    yield from _order_mistakes(declared, "min_value", "max_value")
    yield from _order_mistakes(declared, "min_length", "max_length")
    if declared.get("autocomplete") and declared.get("choices"):
        yield FormMistake(
            ("autocomplete",),
            "APPLICATION_COMMAND_OPTIONS_AUTOCOMPLETE_CHOICES",
            "Autocomplete cannot be used together with choices",
        )
    yield from _choice_mistakes(declared)
    options = declared.get("options") or ()
    for number, option in enumerate(options):
        before = options[:number]
        if any(each["name"] == option["name"] for each in before):
            yield FormMistake(
                ("options", number, "name"), "APPLICATION_COMMAND_OPTIONS_NAME_DUPLICATE", "Option names must be unique"
            )
        if option.get("required") and not all(each.get("required") for each in before):
            yield FormMistake(
                ("options", number),
                "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
                "Required options must be placed before non-required options",
            )
        if any((each["type"] in _NESTED) != (option["type"] in _NESTED) for each in before):
            yield FormMistake(
                ("options", number, "type"),
                "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID",
                "Sub-commands and groups are mutually exclusive to all other types",
            )
        yield from _below(("options", number), _command_mistakes(option))


def _choice_mistakes(declared: Json) -> Iterator[FormMistake]:
    for number, choice in enumerate(declared.get("choices") or ()):
        value = choice["value"]
        if isinstance(value, str) and not 1 <= len(value) <= _MAX_CHOICE:
            yield FormMistake(
                ("choices", number, "value"), "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {_MAX_CHOICE} in length."
            )


def _characters(declared: Json) -> int:
    """Count the characters of a command. Of each text, the longest language counts."""
    own = sum(
        max(map(len, [declared.get(key) or "", *(declared.get(f"{key}_localizations") or {}).values()]))
        for key in ("name", "description")
    )
    # A choice is sent by its value, which counts as a description does.
    choices = ({**choice, "description": str(choice["value"])} for choice in declared.get("choices") or ())
    return own + sum(map(_characters, (*(declared.get("options") or ()), *choices)))


_LIMITS: Mapping[str, Callable[[Any], Iterator[FormMistake]]] = {
    "POST /channels/{}/messages": _message_mistakes,
    "PATCH /channels/{}/messages/{}": _message_mistakes,
    "POST /webhooks/{}/{}": _message_mistakes,
    "PATCH /webhooks/{}/{}/messages/{}": _message_mistakes,
    "POST /interactions/{}/{}/callback": _callback_mistakes,
    "PUT /applications/{}/commands": _commands_mistakes,
    "PUT /applications/{}/guilds/{}/commands": _commands_mistakes,
}
