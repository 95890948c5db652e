"""Where settings come from: TOML files, `.env`, environment variables. Each reader gives what it found and what
is wrong with it; none decides which value wins.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dotenv.parser import parse_stream

from config.problems import VARIABLE_PREFIX, Origin, not_a_section, unknown_key, unknown_variable
from config.schema import SETTINGS, WELL_KNOWN_VARIABLES, is_section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from config.schema import Key, Setting

# Steers the program and is no setting: the path of the operator's file.
CONFIG_VARIABLE = "ROOMTONE_CONFIG"

OVERRIDE = Origin("an override")

_TABLE = re.compile(r"\s*\[([^\[\]]+)\]\s*(#.*)?$")
_ASSIGNMENT = re.compile(r"\s*([A-Za-z0-9_.\-\"']+)\s*=")


@dataclass(frozen=True, slots=True)
class Given:
    """One value somebody set, and where."""

    key: Key
    value: object
    origin: Origin


@dataclass(slots=True)
class Reading:
    """What one source gave, and its mistakes."""

    given: list[Given] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable. `place` says where it stands."""

    name: str
    value: str
    place: str

    @property
    def origin(self) -> Origin:
        """Return it as a setting's origin."""
        return Origin(f"{self.name} ({self.place})", self.name)


def read_toml(path: Path, *, name: str) -> Reading:
    """Read one TOML file. `name` is what people call it."""
    reading = Reading()
    try:
        # Some editors put a mark before UTF-8.
        text = path.read_text(encoding="utf-8-sig")
        tree = tomllib.loads(text)
    except FileNotFoundError:
        reading.problems.append(f"{name} does not exist. Check the path, or leave {CONFIG_VARIABLE} away.")
    except IsADirectoryError:
        reading.problems.append(f"{name} is a directory. Name the file in it, for example {name}/roomtone.toml.")
    except OSError as exc:
        reading.problems.append(f"{name} cannot be read: {exc.strerror or exc}. Check the file's rights.")
    except UnicodeDecodeError as exc:
        reading.problems.append(f"{name} is not UTF-8 text (byte {exc.start}). Save it as UTF-8.")
    except tomllib.TOMLDecodeError as exc:
        reading.problems.append(
            f'{name} is not valid TOML: {_lower_first(str(exc))}. For example: language = "en" below [asr].'
        )
    else:
        lines = _lines_of_keys(text)
        _flatten(tree, (), name, lines, reading)
    return reading


def read_overrides(overrides: Mapping[str, object]) -> Reading:
    """Read values given by the program itself, by dotted name."""
    reading = Reading()
    for name, value in overrides.items():
        key = tuple(name.split("."))
        if key in SETTINGS:
            reading.given.append(Given(key, value, OVERRIDE))
        else:
            reading.problems.append(unknown_key(key, OVERRIDE))
    return reading


def read_env_file(path: Path) -> tuple[list[Variable], list[str]]:
    """Return the variables a `.env` file sets, and its mistakes. A missing file sets none."""
    variables: list[Variable] = []
    problems: list[str] = []
    try:
        with path.open(encoding="utf-8") as stream:
            for binding in parse_stream(stream):
                if binding.error:
                    # Not the line itself: it may hold a token.
                    place = f".env line {binding.original.line}"
                    problems.append(f"{place} is not NAME=value. For example: DISCORD_TOKEN=…")
                elif binding.key is not None and binding.value is not None:
                    variables.append(Variable(binding.key, binding.value, ".env"))
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        problems.append(f".env cannot be read: {reason}. Check the file, or remove it.")
    return variables, problems


def read_variables(variables: Iterable[Variable]) -> Reading:
    """Pick the settings out of the environment; of two variables of one name the later wins.

    An empty variable counts as not set: that is what compose files and shells make of an absent one.
    """
    reading = Reading()
    by_name = {variable.name: variable for variable in variables if variable.value.strip()}
    for name, key in WELL_KNOWN_VARIABLES.items():
        if (variable := by_name.get(name)) is not None:
            reading.given.append(Given(key, variable.value.strip(), variable.origin))
    settings = {setting.variable: setting for setting in SETTINGS.values()}
    for name in sorted(by_name):
        variable = by_name[name]
        if not name.startswith(VARIABLE_PREFIX) or name == CONFIG_VARIABLE:
            continue
        setting = settings.get(name)
        if setting is None:
            reading.problems.append(unknown_variable(name, variable.place))
            continue
        reading.given.append(Given(setting.key, _parsed(setting, variable.value.strip()), variable.origin))
    return reading


def _flatten(tree: Mapping[str, object], under: Key, name: str, lines: Mapping[Key, int], reading: Reading) -> None:
    for part, value in tree.items():
        key = (*under, part)
        origin = Origin(f"{name} line {lines[key]}" if key in lines else name)
        if key in SETTINGS:
            reading.given.append(Given(key, value, origin))
        elif not is_section(key):
            reading.problems.append(unknown_key(key, origin))
        elif isinstance(value, dict):
            _flatten(value, key, name, lines, reading)
        else:
            reading.problems.append(not_a_section(key, origin, value))


def _lines_of_keys(text: str) -> dict[Key, int]:
    """Return the line of each table and assignment. tomllib tells none; a guess inside a long string hurts nobody."""
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
    """Return a variable's text as the schema can take it; lists are comma-separated, or in TOML's notation."""
    if not setting.collection:
        return text
    if text[:1] in ("[", "{"):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
