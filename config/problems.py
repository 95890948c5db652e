"""Describes each mistake in a configuration in a plain sentence: the key, where it was set, what is wrong, an example.

The sentences never contain a secret, or a value that looks like one.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr, ValidationError

from bot.settings import LISTEN_HOST
from config.schema import SETTINGS, VARIABLE_PREFIX, WELL_KNOWN_VARIABLES, Key, Setting, Settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pydantic_core import ErrorDetails


SHOWN_CHARS = 60
# If two names are at least this similar, one was probably meant to be the other. All variables begin alike.
_ALIKE = 0.6
_VARIABLES_ALIKE = 0.75
# Names of other programs' variables must be nearly the same: OPENAI_KEY is, ANTHROPIC_API_KEY is not OPENAI_API_KEY.
_SAME_NAME = 0.83

# Discord's tokens have three parts; other tokens start with a known prefix. Somebody may have pasted one into the wrong
# key.
_LOOKS_SECRET = re.compile(r"[\w-]{20,}\.[\w-]{5,}\.[\w-]{20,}|\b(sk|pk|ghp|hf|xox[a-z])[-_][\w-]{8,}|//[^\s/]*@")


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where a value was set. `place`: for example "roomtone.toml". `variable`: the variable's name or None."""

    place: str
    variable: str | None = None


BUILT_IN = SettingOrigin("the built-in defaults")

# The requirement behind each type of pydantic error. The words in braces come from the error's context.
_DEMANDS: dict[str, str] = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text in quotes",
    "path_type": "must be a path in quotes",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "missing": "is missing",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
}

# What a text must look like, in words, for each pattern in the schema.
FORMS: dict[str, str] = {
    r"^[a-z]{2,3}$": "must be a language code of two or three small letters",
    r"^(https?://[^\s/?#@]+/?)?$": "must be an http:// or https:// address without a path",
    LISTEN_HOST: "must be a host's name or an IP address, without http:// and without a port (web.port)",
    r"^(all|[1-9][0-9]{0,19})$": "must be the id of a server, or all for every server",
    r"^[a-z][a-z0-9-]{0,30}$": "must be a name of at most 31 small letters, digits and - that begins with a letter",
}


def unknown_key(key: Key, origin: SettingOrigin) -> str:
    """Return the sentence for an unknown key in a file or an override."""
    name, known = ".".join(key), [*(each.name for each in SETTINGS.values()), *Settings.model_fields]
    return f"{_printable(name)} in {origin.place} is not a setting.{_did_you_mean(name, known, _ALIKE)}"


def unknown_variable(name: str, place: str) -> str:
    """Return the sentence for an unknown ROOMTONE_ variable."""
    hint = _did_you_mean(name, [setting.variable for setting in SETTINGS.values()], _VARIABLES_ALIKE)
    rule = f" Variables are named {VARIABLE_PREFIX}SECTION__FIELD, for example ROOMTONE_ASR__LANGUAGES=en."
    return f"{name} in {place} is not a setting.{hint or rule}"


def not_read(name: str, place: str, filled: Collection[str]) -> str | None:
    """Return a sentence for another program's variable that was probably meant to be one of ours; None: it was not.

    `filled`: the variables that are set. `.env` is a file that people write by hand, and a misspelt name in it would go
    unnoticed.
    """
    ours = (setting.variable for setting in SETTINGS.values())
    hint = _did_you_mean(name.upper(), [*WELL_KNOWN_VARIABLES, *ours], _SAME_NAME)
    if not hint or hint.split()[-1].rstrip("?") in filled:
        return None
    return f"{name} in {place} is not read.{hint}"


def empty_path(setting: Setting, origin: SettingOrigin) -> str:
    """Return the sentence for an empty text where a path is needed."""
    return f"{setting.name} in {origin.place} is empty. Name a path. For example: {example(setting, origin)}"


def not_a_section(name: str, origin: SettingOrigin, value: object) -> str:
    """Return the sentence for a plain value where a section is expected."""
    return f"{name} in {origin.place} must be a section, written as [{name}], but is {_shown(value)}."


def from_validation(error: ValidationError, origins: Mapping[Key, SettingOrigin]) -> list[str]:
    """Return one sentence for each mistake that pydantic found. `origins`: where each key was set."""
    sentences: dict[tuple[Key, str], str] = {}
    for detail in error.errors(include_url=False):
        # Pydantic adds union members and list indices to the key.
        key = tuple(map(str, detail["loc"][:2]))
        sentence = _sentence(key, detail, origins)
        # Pydantic reports an error for each member of a union; the first one is enough. A table may have several.
        is_table = key not in SETTINGS or SETTINGS[key].entry_type is not None
        sentences.setdefault((key, sentence if is_table else ""), sentence)
    return list(sentences.values())


def example(setting: Setting, origin: SettingOrigin) -> str:
    """Return a correct line for `setting`, in the notation of the source where it was set."""
    usual = "your-key" if setting.secret else setting.default
    value = setting.field.examples[0] if setting.field.examples else usual
    if origin.variable is not None:
        return f"{origin.variable}={_in_variable(value)}"
    return f"{setting.key[-1]} = {toml_value(value)}"


def toml_value(value: Any) -> str:
    """Return `value` in TOML notation. A secret becomes an empty string."""
    match value:
        case dict() if value:
            pairs = (f"{json.dumps(str(key))} = {toml_value(each)}" for key, each in value.items())
            return "{ " + ", ".join(pairs) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(toml_value, value)) + "]"
        case SecretStr():
            return '""'
    # A path is text. Numbers, text and the rest are written as in JSON.
    return json.dumps(value, ensure_ascii=False, default=str)


def _in_variable(value: Any) -> str:
    """Return `value` as a variable has it: lists with commas, tables in TOML notation."""
    if isinstance(value, dict) or (isinstance(value, list | tuple) and any(isinstance(each, dict) for each in value)):
        return toml_value(value)
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _printable(name: str) -> str:
    # A quoted TOML key may contain a newline, but a mistake is reported on one line.
    return name if name.isprintable() else repr(name)


def _did_you_mean(written: str, known: Iterable[str], alike: float) -> str:
    close = difflib.get_close_matches(written, known, n=1, cutoff=alike)
    return f" Did you mean {close[0]}?" if close else ""


def _sentence(key: Key, detail: ErrorDetails, origins: Mapping[Key, SettingOrigin]) -> str:
    setting = SETTINGS.get(key)
    demand = _demand(detail)
    if not key:
        # Settings of several sections, which the sentence names.
        return f"{demand}."
    if setting is None:
        places = [f"{each[-1]} in {origin.place}" for each, origin in origins.items() if each[: len(key)] == key]
        return f"[{'.'.join(key)}] ({', '.join(places)}) does not fit together: {demand}."
    origin = origins.get(key, BUILT_IN)
    where, value = f"{setting.name} in {origin.place}", ""
    if setting.entry_type is not None and len(detail["loc"]) > len(key):
        # It has no value, which may be secret.
        number, *rest = detail["loc"][len(key) :]
        name = f"{_printable(str(rest[0]))} in " if rest else ""
        where = f"{name}entry {int(number) + 1} of {where}"
        if detail["type"] == "extra_forbidden":
            hint = _did_you_mean(str(rest[0]), setting.entry_type.model_fields, _ALIKE)
            return f"{where} is not a setting.{hint}"
    elif not setting.secret and detail["type"] != "value_error":
        value = f", but is {_shown(detail['input'])}"
    demand = f"is not usable: {demand}" if detail["type"] == "value_error" else demand
    return f"{where} {demand}{value}. For example: {example(setting, origin)}"


def _demand(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    if detail["type"] == "value_error":
        return str(context.get("error", detail["msg"])).rstrip(".")
    if detail["type"] == "string_pattern_mismatch":
        return FORMS.get(str(context.get("pattern", "")), "must have another form")
    if context.get("min_length") == 1:
        return "must not be empty"
    template = _DEMANDS.get(detail["type"])
    return template.format(**context) if template is not None else f"is not usable ({detail['msg']})"


def _shown(value: object) -> str:
    text = "hidden here, for it looks like a secret" if _LOOKS_SECRET.search(repr(value)) else repr(value)
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
