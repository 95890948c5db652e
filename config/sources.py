"""Reads settings from TOML files, `.env` and environment variables.

Each reader returns the values and mistakes that it found. `load` decides which value wins.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dotenv.parser import parse_stream

from config.location import CONFIG_VARIABLE, OPTION_VARIABLES
from config.problems import VARIABLE_PREFIX, SettingOrigin, not_a_section, unknown_key, unknown_variable
from config.schema import INTERNAL, SETTINGS, WELL_KNOWN_VARIABLES, is_section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from dotenv.parser import Binding

    from config.schema import Key, Setting

# Where a variable may come from.
ENVIRONMENT = "the environment"

OVERRIDE = SettingOrigin("an override")

_TABLE = re.compile(r"\s*\[([^\[\]]+)\]\s*(#.*)?$")
_ASSIGNMENT = re.compile(r"\s*([A-Za-z0-9_.\-\"']+)\s*=")


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A value from a source, and the place where it was set."""

    key: Key
    value: object
    origin: SettingOrigin


@dataclass(slots=True)
class SourceReading:
    """The values and mistakes of one source."""

    given: list[GivenValue] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    # Sentences for the operator that stop nothing.
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable. `place`: `.env` or the environment."""

    name: str
    value: str
    place: str

    @property
    def origin(self) -> SettingOrigin:
        """Return the origin of a setting that this variable sets."""
        return SettingOrigin(f"{self.name} ({self.place})", self.name)


def read_toml(path: Path, *, name: str) -> SourceReading:
    """Read one TOML file. `name`: the file's name in messages."""
    found = SourceReading()
    try:
        # Some editors start UTF-8 files with a byte order mark.
        text = path.read_text(encoding="utf-8-sig")
        tree = tomllib.loads(text)
    except FileNotFoundError:
        found.problems.append(f"{name} does not exist. Check the path, or leave {CONFIG_VARIABLE} or --config away.")
    except OSError as exc:
        found.problems.append(f"{name} cannot be read: {exc.strerror or exc}. Check the file's rights.")
    except UnicodeDecodeError as exc:
        found.problems.append(f"{name} is not UTF-8 text (byte {exc.start}). Save it as UTF-8.")
    except tomllib.TOMLDecodeError as exc:
        found.problems.append(
            f'{name} is not valid TOML: {_lower_first(str(exc))}. For example: language = "en" below [asr].'
        )
    except (ValueError, RecursionError):
        # TOML sets no limit to either, Python does.
        found.problems.append(f"{name} cannot be read: it is nested too deeply, or a number is too long.")
    else:
        lines = _lines_of_keys(text)
        _flatten(tree, (), name, lines, found)
    return found


def read_overrides(overrides: Mapping[str, object]) -> SourceReading:
    """Read the values that the program itself sets, by dotted name. They may set internal fields too."""
    found = SourceReading()
    for name, value in overrides.items():
        key = tuple(name.split("."))
        if key in SETTINGS or key in INTERNAL:
            found.given.append(GivenValue(key, value, OVERRIDE))
        else:
            found.problems.append(unknown_key(key, OVERRIDE))
    return found


def read_env_file(path: Path) -> tuple[list[Variable], list[str]]:
    """Return the variables of a `.env` file and its mistakes. A missing file has neither."""
    variables: list[Variable] = []
    problems: list[str] = []
    try:
        with path.open(encoding="utf-8") as stream:
            for binding in parse_stream(stream):
                if binding.error or _is_bare_value(binding):
                    # The message does not quote the line, because the line may contain a token.
                    place = f".env line {_line_of(binding)}"
                    problems.append(f"{place} is not NAME=value. For example: DISCORD_TOKEN=…")
                elif binding.key is not None and binding.value is not None:
                    variables.append(Variable(binding.key, binding.value, ".env"))
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        problems.append(f".env cannot be read: {reason}. Check the file, or remove it.")
    return variables, problems


def _is_bare_value(binding: Binding) -> bool:
    """Return whether a line has no name, as when somebody pastes a token alone. A name alone is none of our business:
    Docker takes its value from the shell.
    """
    return binding.key is not None and binding.value is None and not binding.key.isidentifier()


def _line_of(binding: Binding) -> int:
    """Return the line of a binding. The parser counts the blank lines before it to it."""
    text: str = binding.original.string
    return int(binding.original.line) + text[: len(text) - len(text.lstrip())].count("\n")


def read_variables(variables: Iterable[Variable]) -> SourceReading:
    """Read the settings among `variables`. If a name occurs twice, the later value wins.

    An empty variable counts as not set, because compose files and shells set absent variables to an empty string.
    """
    found = SourceReading()
    by_name = {variable.name: variable for variable in variables if variable.value.strip()}
    for name, key in WELL_KNOWN_VARIABLES.items():
        if (variable := by_name.get(name)) is not None:
            found.given.append(GivenValue(key, variable.value.strip(), variable.origin))
    settings = {setting.variable: setting for setting in SETTINGS.values()}
    for name in sorted(by_name):
        variable = by_name[name]
        if not name.startswith(VARIABLE_PREFIX) or name in OPTION_VARIABLES or name in WELL_KNOWN_VARIABLES:
            continue
        setting = settings.get(name)
        if setting is None:
            found.problems.append(unknown_variable(name, variable.place))
            continue
        found.given.append(GivenValue(setting.key, _parsed(setting, variable.value.strip()), variable.origin))
    return found


def _flatten(tree: Mapping[str, object], under: Key, name: str, lines: Mapping[Key, int], found: SourceReading) -> None:
    for part, value in tree.items():
        key = (*under, part)
        origin = SettingOrigin(f"{name} line {lines[key]}" if key in lines else name)
        if key in SETTINGS:
            found.given.append(GivenValue(key, value, origin))
        elif not is_section(key):
            found.problems.append(unknown_key(key, origin))
        elif isinstance(value, dict):
            _flatten(value, key, name, lines, found)
        else:
            found.problems.append(not_a_section(key, origin, value))


def _lines_of_keys(text: str) -> dict[Key, int]:
    """Return the line number of each table and assignment, because tomllib does not report line numbers.

    A line inside a multi-line string may be mistaken for an assignment. The numbers are used only in messages.
    """
    lines: dict[Key, int] = {}
    table: Key = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if (heading := _TABLE.match(line)) is not None:
            table = _split(heading[1])
            lines.setdefault(table, number)
        elif (assignment := _ASSIGNMENT.match(line)) is not None:
            lines.setdefault((*table, *_split(assignment[1])), number)
    return lines


def _split(dotted: str) -> Key:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _parsed(setting: Setting, text: str) -> object:
    """Convert a variable's text to a value for the schema. Lists are comma-separated or written in TOML notation."""
    if not setting.collection:
        return text
    if text[:1] in ("[", "{"):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):
            return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
