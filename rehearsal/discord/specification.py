"""Holds bodies of requests and answers against Discord's specification, and names each mistake as Discord does.

Discord takes ids as numbers too, and answers with texts alone (Discord's reference, "ID Serialization").
"""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker, ValidationError

from rehearsal.errors import LocalDiscordError

PATH = Path(__file__).parent / "discord-api.json"
FormPlace: TypeAlias = "tuple[str | int, ...]"
_SCHEMES = ("http", "https", "ws", "wss", "attachment", "discord")
_FORMATS = FormatChecker(())
_SNOWFLAKE = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^(0|[1-9][0-9]*)$"}]}


class FormMistake(NamedTuple):
    """One mistake in a body: where it is, Discord's code, and the sentence for whoever wrote the bot."""

    place: FormPlace
    code: str
    message: str


@_FORMATS.checks("uri", raises=ValueError)
def _is_address(value: object) -> bool:
    found = urlsplit(value) if isinstance(value, str) else None
    return found is None or (found.scheme in _SCHEMES and bool(found.netloc))


@_FORMATS.checks("date-time", raises=ValueError)
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or bool(datetime.datetime.fromisoformat(value))


def route_key(method: str, path: str) -> str:
    """Return a route under the name that the specification has here, whatever the parts of its path are called."""
    return f"{method} {re.sub('{[^}]*}', '{}', path)}"


@functools.cache
def read() -> dict[str, Any]:
    """Return the specification. Raises `LocalDiscordError`."""
    try:
        found: dict[str, Any] = json.loads(PATH.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise LocalDiscordError(
            f"Discord's specification cannot be read from {PATH.name} ({error}). Install Roomtone again, or make the "
            "file anew with rehearsal.discord.cut_specification."
        ) from error
    return found


@functools.cache
def _validator(key: str, part: str) -> Draft202012Validator | None:
    """Return what checks a part of a route: "request", or the status of an answer. None: no such part."""
    specification = read()
    route = specification["routes"].get(key, {})
    schema = route.get("request") if part == "request" else route.get("answers", {}).get(part)
    if schema is None:
        return None
    schemas = specification["$defs"] | ({"SnowflakeType": _SNOWFLAKE} if part == "request" else {})
    return Draft202012Validator({**schema, "$defs": schemas}, format_checker=_FORMATS)


def mistakes_in(key: str, part: Literal["request"] | int, body: object) -> list[FormMistake]:
    """Return what a body of this route lacks or has too much of; what the specification does not know has none."""
    validator = _validator(key, str(part))
    found = [] if validator is None else [leaf for error in validator.iter_errors(body) for leaf in _leaves(error)]
    # Each field that is missing is an error of its own, and all of them name all.
    return list(dict.fromkeys(mistake for error in found for mistake in _described(error)))


def _leaves(error: ValidationError) -> Iterator[ValidationError]:
    """Yield the mistakes behind an error. Of a union, those of the member that was meant."""
    if error.validator != "anyOf":
        yield error
        return
    members: dict[int, list[ValidationError]] = {}
    for each in error.context or ():
        members.setdefault(int(each.relative_schema_path[0]), []).append(each)
    meant = [found for found in members.values() if not any(map(_is_of_another_kind, found))]
    if not meant:
        kinds = [each for found in members.values() for each in found if list(each.relative_path) == ["type"]]
        yield kinds[0] if kinds else next(each for found in members.values() for each in found)
        return
    yield from min(([leaf for each in found for leaf in _leaves(each)] for found in meant), key=len)


def _is_of_another_kind(error: ValidationError) -> bool:
    """Return whether an error says that a member of a union was not meant: its type, or the type that it names."""
    where = list(error.relative_path)
    return (where == ["type"] and error.validator in ("enum", "type")) or (not where and error.validator == "type")


_OF_TYPES = {
    "string": ("STRING_TYPE_CONVERT", "Could not interpret the value as string."),
    "integer": ("NUMBER_TYPE_COERCE", "The value is not an integer."),
    "number": ("NUMBER_TYPE_COERCE", "The value is not a number."),
    "boolean": ("BOOLEAN_TYPE_CONVERT", "Must be either true or false."),
    "array": ("LIST_TYPE_CONVERT", "Only iterables may be used in a ListType."),
    "object": ("MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType."),
}
_TOO_LONG = ("BASE_TYPE_MAX_LENGTH", "Must be {} or fewer in length.")
_TOO_SHORT = ("BASE_TYPE_MIN_LENGTH", "Must be {} or more in length.")
_OF_RULES = {
    "required": ("BASE_TYPE_REQUIRED", "This field is required"),
    "enum": ("BASE_TYPE_CHOICES", "Value must be one of {}."),
    "maxLength": _TOO_LONG,
    "maxItems": _TOO_LONG,
    "minLength": _TOO_SHORT,
    "minItems": _TOO_SHORT,
    "maximum": ("NUMBER_TYPE_MAX", "Value should be less than or equal to {}."),
    "minimum": ("NUMBER_TYPE_MIN", "Value should be greater than or equal to {}."),
    "uri": ("URL_TYPE_INVALID_URL", "Not a well formed URL."),
    "date-time": ("DATE_TIME_TYPE_PARSE", "Should be ISO8601."),
}


def _described(error: ValidationError) -> Iterator[FormMistake]:
    place, rule, limit = tuple(error.absolute_path), str(error.validator), cast("Any", error.validator_value)
    if rule == "type":
        yield FormMistake(place, *_OF_TYPES[limit if isinstance(limit, str) else limit[0]])
        return
    code, message = _OF_RULES.get(limit if rule == "format" else rule, ("BASE_TYPE_INVALID", "Invalid value."))
    missing = [(name,) for name in limit if name not in cast("Any", error.instance)] if rule == "required" else [()]
    yield from (FormMistake((*place, *name), code, message.format(limit)) for name in missing)
