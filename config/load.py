"""Loads the settings from the operator's file, `.env`, the environment and overrides. A later source overrides an
earlier one.

pydantic-settings reads the sources. Here they are merged, with where each value was set, so that all mistakes are told
at once.
"""

from __future__ import annotations

import os
import sys
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dotenv.parser import parse_stream
from pydantic import ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, TomlConfigSettingsSource

from config import ConfigError
from config.location import (
    CONFIG_VARIABLE,
    ENV_FILE,
    OPTION_VARIABLES,
    SettingsLocation,
    at_home,
    find_location,
    running_checkout,
)
from config.problems import (
    BUILT_IN,
    SettingOrigin,
    empty_path,
    from_validation,
    not_a_section,
    not_read,
    unknown_key,
    unknown_variable,
)
from config.schema import SETTINGS, VARIABLE_PREFIX, WELL_KNOWN_VARIABLES, Key, Settings
from voice.endpoint_settings import OPENAI_URL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic.fields import FieldInfo


# The folder that systemd makes for a service's credentials, and ours in it (deploy/roomtone.service).
CREDENTIALS_VARIABLE = "CREDENTIALS_DIRECTORY"
CREDENTIALS_FILE = "env"
ENVIRONMENT = "the environment"
OVERRIDE = "an override"
# The sources take no more of a class of settings than any model has: its fields.
_SCHEMA = cast("type[BaseSettings]", Settings)


def _to_stderr(sentence: str) -> None:
    print(sentence, file=sys.stderr)  # noqa: T201 - logs are not set up before the settings are known


def load(
    *,
    directory: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
    notify: Callable[[str], None] = _to_stderr,
) -> Settings:
    """Return the settings.

    The operator's file and `.env` are looked for as `config.location` says. `directory`: look in this folder alone,
    unless ROOMTONE_CONFIG names another. `environ`: the environment variables, which override `.env`; the default is
    the process's environment. `overrides`: values by dotted name that override everything else, for rehearsals and
    benchmarks. `notify` is called with a sentence for each variable that is probably
    meant to be one of ours.

    Raises `ConfigError` with every mistake in all sources.
    """
    environ = environ if environ is not None else os.environ
    location = _location(directory, environ)
    base = location.base
    merged = _Merged.of_defaults(base)
    if location.named or location.file.exists():
        merged.add_file(location.file, name=str(location.file) if location.named else location.file.name, base=base)
    set_variables: set[str] = set()
    for place, variables in merged.variables(location.folder, environ):
        merged.add_variables(variables, place, base=Path() if place == ENVIRONMENT else base)
        set_variables.update(variables)
        for name in variables:
            if (notice := not_read(name, place, set_variables | environ.keys())) is not None:
                notify(notice)
    for name, value in (overrides or {}).items():
        merged.add(tuple(name.split(".")), value, SettingOrigin(OVERRIDE), base=Path())
    if (withheld := merged.keep_shells_key()) is not None:
        notify(withheld)
    settings = merged.settings()
    asr = settings.asr
    if asr.by_endpoint or os.sep not in asr.model:
        return settings
    # A path to the local Whisper model starts where all paths do.
    own = asr.model_copy(update={"model": str(base / at_home(asr.model))})
    return settings.model_copy(update={"asr": own})


def default_settings() -> Settings:
    """Return the settings of an operator who sets nothing. Relative paths start where they do in `load`."""
    return _Merged.of_defaults(_location(None, os.environ).base).settings()


def settings_file() -> Path:
    """Return the operator's settings file, whether it is there or not."""
    return _location(None, os.environ).file


def env_file() -> Path:
    """Return the file with the variables, whether it is there or not."""
    return _location(None, os.environ).folder / ENV_FILE


def option(name: str) -> str:
    """Return what a variable of a command's option says, in the environment or in `.env`; empty: nothing."""
    places = reversed(_Merged().variables(_location(None, os.environ).folder, os.environ))
    return next((variables[name] for _, variables in places if name in variables), "")


def _location(directory: Path | None, environ: Mapping[str, str]) -> SettingsLocation:
    working = directory or Path.cwd()
    # Where somebody names a folder, it takes the place of the checkout.
    location = find_location(working, environ, checkout=directory or running_checkout())
    # Paths that somebody types, in an option or in a shell, start at the working directory.
    return replace(location, base=Path()) if location.base == working else location


class _Variables(EnvSettingsSource):
    """Reads the settings among some variables. Lists are comma-separated; tables are written as in TOML."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(_SCHEMA, env_prefix=VARIABLE_PREFIX, env_nested_delimiter="__")
        self.env_vars = {name.lower(): value for name, value in variables.items()}

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Return the value of a setting that takes several."""
        if value[:1] in ("[", "{"):
            try:
                return tomllib.loads(f"value = {value}")["value"]
            except (ValueError, RecursionError):
                return value
        return [part.strip() for part in value.split(",") if part.strip()]


@dataclass(slots=True)
class _Merged:
    """The values of all sources by section, where each was set, and the mistakes."""

    values: dict[str, dict[str, object]] = field(default_factory=dict)
    origins: dict[Key, SettingOrigin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of_defaults(cls, base: Path) -> _Merged:
        """Return what is used where nothing is set. `base`: where relative paths start."""
        merged = cls()
        for setting in SETTINGS.values():
            if isinstance(setting.default, Path):
                merged.values.setdefault(setting.key[0], {})[setting.key[1]] = str(base / setting.default)
        return merged

    def add(self, key: Key, value: object, origin: SettingOrigin, *, base: Path) -> None:
        """Set one value. `base`: where a relative path in it starts."""
        setting = SETTINGS.get(key)
        if setting is None:
            self.problems.append(unknown_key(key, origin))
            return
        if isinstance(value, str) and not value.strip(" \t\r\n\0"):
            value = ""
        if setting.field.annotation is Path and isinstance(value, str):
            if not value:
                # It would be the working directory: the database would be wherever the command is typed.
                self.problems.append(empty_path(setting, origin))
                return
            value = str(base / at_home(value))
        self.values.setdefault(key[0], {})[key[1]] = value
        self.origins[key] = origin

    def add_file(self, path: Path, *, name: str, base: Path) -> None:
        """Read one TOML file. `name`: the file's name in messages."""
        if not path.exists():
            self.problems.append(f"{name} does not exist. Check the path, or leave {CONFIG_VARIABLE} or --config away.")
            return
        origin = SettingOrigin(name)
        try:
            tree = TomlConfigSettingsSource(_SCHEMA, path)()
        except OSError as exc:
            self.problems.append(f"{name} cannot be read: {exc.strerror or exc}. Check the file's rights.")
            return
        except (ValueError, RecursionError) as exc:
            # TOML limits neither nesting nor the length of numbers, Python does.
            self.problems.append(f'{name} is not valid TOML: {exc}. For example: language = "en" below [asr].')
            return
        for section, values in tree.items():
            if section not in Settings.model_fields:
                self.problems.append(unknown_key((section,), origin))
            elif not isinstance(values, dict):
                self.problems.append(not_a_section(section, origin, values))
            else:
                for key, value in values.items():
                    self.add((section, key), value, origin, base=base)

    def variables(self, folder: Path, environ: Mapping[str, str]) -> list[tuple[str, dict[str, str]]]:
        """Return the variables of each place, the most important last.

        An empty variable counts as not set, because compose files and shells set absent variables to an empty string.
        """
        files = [folder / ENV_FILE]
        if credentials := environ.get(CREDENTIALS_VARIABLE):
            files.append(Path(credentials) / CREDENTIALS_FILE)
        places = [(ENV_FILE, self._env_file(file)) for file in files] + [(ENVIRONMENT, environ)]
        return [
            (place, {name: value.strip() for name, value in found.items() if value.strip()}) for place, found in places
        ]

    def _env_file(self, path: Path) -> Mapping[str, str]:
        """Return the variables in a `.env` file. A missing file has none."""
        try:
            with path.open(encoding="utf-8") as stream:
                bindings = list(parse_stream(stream))
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
            self.problems.append(f".env cannot be read: {reason}. Check the file, or remove it.")
            return {}
        # A name alone is none of our business: Docker takes its value from the shell. The message quotes no line,
        # because the line may contain a token.
        broken = [
            each for each in bindings if each.error or (each.key and each.value is None and not each.key.isidentifier())
        ]
        self.problems += ["A line in .env is not NAME=value. For example: DISCORD_TOKEN=…"] * len(broken)
        return {each.key: each.value for each in bindings if each.key is not None and each.value is not None}

    def add_variables(self, variables: Mapping[str, str], place: str, *, base: Path) -> None:
        """Set the values of all variables of ours in one place."""
        # The setting's own variable overrides the well-known one.
        written = {SETTINGS[key].variable: name for name, key in WELL_KNOWN_VARIABLES.items() if name in variables}
        written |= {name: name for name in variables if name.startswith(VARIABLE_PREFIX)}
        known = {setting.variable for setting in SETTINGS.values()}
        for name in written.keys() - known - {*OPTION_VARIABLES, *WELL_KNOWN_VARIABLES}:
            self.problems.append(unknown_variable(name, place))
        tree = _Variables({name: variables[written[name]] for name in written.keys() & known})()
        for section, values in tree.items():
            for key, value in values.items():
                variable = written[SETTINGS[section, key].variable]
                self.add((section, key), value, SettingOrigin(f"{variable} ({place})", variable), base=base)

    def keep_shells_key(self) -> str | None:
        """Take out the key for OpenAI that many shells have, where the language model is elsewhere; return a sentence
        then. A shell that names that address too means it.
        """
        url = str(self.values.get("llm", {}).get("base_url", ""))
        elsewhere = bool(url) and not f"{url}/".startswith(f"{OPENAI_URL.removesuffix('/v1')}/")
        shells = f"({ENVIRONMENT})"
        of_key, of_url = (self.origins.get(("llm", name), BUILT_IN) for name in ("api_key", "base_url"))
        if not elsewhere or of_key.place != f"OPENAI_API_KEY {shells}" or of_url.place.endswith(shells):
            return None
        del self.values["llm"]["api_key"]
        return (
            "OPENAI_API_KEY of the shell is not used, because llm.base_url is not OpenAI's. If that endpoint takes it, "
            "set ROOMTONE_LLM__API_KEY."
        )

    def settings(self) -> Settings:
        """Return the validated settings. Raises `ConfigError`."""
        try:
            settings = Settings.model_validate(self.values)
        except ValidationError as exc:
            # `from None`: the original error message contains values, including secrets.
            raise ConfigError((*self.problems, *from_validation(exc, self.origins))) from None
        if self.problems:
            raise ConfigError(tuple(self.problems))
        return settings
