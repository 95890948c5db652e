"""Loads the settings from defaults, the operator's file, `.env`, the environment and overrides. A later source
overrides an earlier one.

The defaults come from the schema. `default.toml` is written from the schema for people and is not read here, so an
edited copy changes nothing.
"""

from __future__ import annotations

import os
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dotenv.parser import parse_stream
from pydantic import ValidationError

from config.errors import ConfigError
from config.location import (
    CONFIG_VARIABLE,
    ENV_FILE,
    OPTION_VARIABLES,
    SettingsLocation,
    at_home,
    find_location,
    location_in,
    running_checkout,
)
from config.problems import (
    SettingOrigin,
    empty_path,
    from_validation,
    not_a_section,
    not_read,
    unknown_key,
    unknown_variable,
)
from config.schema import (
    INTERNAL,
    SETTINGS,
    VARIABLE_PREFIX,
    WELL_KNOWN_VARIABLES,
    Setting,
    Settings,
    is_section,
    variable_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from config.schema import Key

# The folder that systemd makes for a service's credentials, and ours in it (deploy/roomtone.service).
CREDENTIALS_VARIABLE = "CREDENTIALS_DIRECTORY"
CREDENTIALS_FILE = "env"
# The model that hears where no other is named.
LOCAL_RECOGNISER = "whisper-base"
ENVIRONMENT = "the environment"
OVERRIDE = SettingOrigin("an override")


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
    benchmarks. `notify` is called with a sentence for each variable that is probably meant to be one of ours.

    Raises `ConfigError` with every mistake in all sources.
    """
    environ = environ if environ is not None else os.environ
    location = _location(directory, environ)
    # Paths that somebody types, in an option or in a shell, start at the working directory.
    base = Path() if location.base == (directory or Path.cwd()) else location.base
    merged = _Merged()
    if base != Path():
        for setting in SETTINGS.values():
            if isinstance(setting.default, Path):
                merged.values[setting.key] = str(base / setting.default)
    if location.named or location.file.exists():
        merged.add_file(location.file, name=str(location.file) if location.named else location.file.name, base=base)
    for notice in merged.add_variables(merged.variables(location.folder, environ), base=base):
        notify(notice)
    for name, value in (overrides or {}).items():
        merged.add(tuple(name.split(".")), value, OVERRIDE, base=Path())
    return _with_local_recogniser(merged.settings(), base)


def settings_file() -> Path:
    """Return the operator's settings file, whether it is there or not."""
    return _location(None, os.environ).file


def option(name: str) -> str:
    """Return what a variable of a command's option says, in the environment or in `.env`; empty: nothing."""
    variables = _Merged().variables(_location(None, os.environ).folder, os.environ)
    return next((value.strip() for each, value, _ in reversed(variables) if each == name and value.strip()), "")


def _location(directory: Path | None, environ: Mapping[str, str]) -> SettingsLocation:
    if directory is not None and not environ.get(CONFIG_VARIABLE, "").strip():
        return location_in(directory)
    return find_location(directory or Path.cwd(), environ, checkout=running_checkout())


@dataclass(slots=True)
class _Merged:
    """The values of all sources, where each was set, and the mistakes."""

    values: dict[Key, object] = field(default_factory=dict)
    origins: dict[Key, SettingOrigin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, key: Key, value: object, origin: SettingOrigin, *, base: Path) -> None:
        """Set one value. `base`: where a relative path in it starts."""
        setting = SETTINGS.get(key) or INTERNAL.get(key)
        if setting is None:
            self.problems.append(unknown_key(key, origin))
            return
        if isinstance(value, str) and not value.strip(" \t\r\n\0"):
            value = ""
        if setting.path and isinstance(value, str):
            if value:
                value = str(base / at_home(value))
            elif setting.default != "":
                # It would be the working directory: the database would be wherever the command is typed.
                self.problems.append(empty_path(setting, origin))
                return
        self.values[key], self.origins[key] = value, origin

    def add_file(self, path: Path, *, name: str, base: Path) -> None:
        """Read one TOML file. `name`: the file's name in messages."""
        try:
            # Some editors start UTF-8 files with a byte order mark.
            tree = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            self.problems.append(f"{name} does not exist. Check the path, or leave {CONFIG_VARIABLE} or --config away.")
        except OSError as exc:
            self.problems.append(f"{name} cannot be read: {exc.strerror or exc}. Check the file's rights.")
        except UnicodeDecodeError as exc:
            self.problems.append(f"{name} is not UTF-8 text (byte {exc.start}). Save it as UTF-8.")
        except (ValueError, RecursionError) as exc:
            # TOML limits neither nesting nor the length of numbers, Python does.
            self.problems.append(f'{name} is not valid TOML: {exc}. For example: language = "en" below [asr].')
        else:
            self._add_tree(tree, (), SettingOrigin(name), base)

    def _add_tree(self, tree: Mapping[str, object], under: Key, origin: SettingOrigin, base: Path) -> None:
        for part, value in tree.items():
            key = (*under, part)
            if key in SETTINGS or key in INTERNAL:
                self.add(key, value, origin, base=base)
            elif not is_section(key):
                self.problems.append(unknown_key(key, origin))
            elif isinstance(value, dict):
                self._add_tree(value, key, origin, base)
            else:
                self.problems.append(not_a_section(key, origin, value))

    def variables(self, folder: Path, environ: Mapping[str, str]) -> list[tuple[str, str, str]]:
        """Return the names, values and places of all variables, the most important last."""
        found = self._env_file(folder / ENV_FILE)
        if credentials := environ.get(CREDENTIALS_VARIABLE):
            found += self._env_file(Path(credentials) / CREDENTIALS_FILE)
        return found + [(name, value, ENVIRONMENT) for name, value in environ.items()]

    def _env_file(self, path: Path) -> list[tuple[str, str, str]]:
        """Return the variables in a `.env` file. A missing file has none."""
        variables: list[tuple[str, str, str]] = []
        try:
            with path.open(encoding="utf-8") as stream:
                for binding in parse_stream(stream):
                    # A name alone is none of our business: Docker takes its value from the shell.
                    is_bare = binding.key is not None and binding.value is None and not binding.key.isidentifier()
                    if binding.error or is_bare:
                        # The message does not quote the line, because the line may contain a token.
                        self.problems.append("A line in .env is not NAME=value. For example: DISCORD_TOKEN=…")
                    elif binding.key is not None and binding.value is not None:
                        variables.append((binding.key, binding.value, ENV_FILE))
        except FileNotFoundError:
            pass
        except (OSError, UnicodeDecodeError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
            self.problems.append(f".env cannot be read: {reason}. Check the file, or remove it.")
        return variables

    def add_variables(self, variables: Iterable[tuple[str, str, str]], *, base: Path) -> list[str]:
        """Set the values of all variables of ours, and return a sentence for each that nearly is one.

        An empty variable counts as not set, because compose files and shells set absent variables to an empty string.
        """
        filled = {name: (value.strip(), place) for name, value, place in variables if value.strip()}
        settings = {setting.variable: setting for setting in (*INTERNAL.values(), *SETTINGS.values())}
        notices: list[str] = []
        # The setting's own variable overrides the well-known one.
        for name, (value, place) in sorted(filled.items(), key=lambda each: each[0].startswith(VARIABLE_PREFIX)):
            setting = settings.get(variable_of(WELL_KNOWN_VARIABLES[name]) if name in WELL_KNOWN_VARIABLES else name)
            origin = SettingOrigin(f"{name} ({place})", name)
            if setting is not None:
                root = Path() if place == ENVIRONMENT else base
                self.add(setting.key, _parsed(setting, value), origin, base=root)
            elif name.startswith(VARIABLE_PREFIX):
                if name not in OPTION_VARIABLES:
                    self.problems.append(unknown_variable(name, place))
            elif (notice := not_read(name, place, filled)) is not None:
                notices.append(notice)
        return notices

    def settings(self) -> Settings:
        """Return the validated settings. Raises `ConfigError`."""
        tree: dict[str, dict[str, object]] = {}
        for (section, name), value in self.values.items():
            tree.setdefault(section, {})[name] = value
        try:
            settings = Settings.model_validate(tree)
        except ValidationError as exc:
            # `from None`: the original error message contains values, including secrets.
            raise ConfigError((*self.problems, *from_validation(exc, self.origins))) from None
        if self.problems:
            raise ConfigError(tuple(self.problems))
        return settings


def _parsed(setting: Setting, text: str) -> Any:
    """Convert a variable's text to a value for the schema. Lists are comma-separated or written in TOML notation."""
    if not setting.collection:
        return text
    if text[:1] in ("[", "{"):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):
            return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _with_local_recogniser(settings: Settings, base: Path) -> Settings:
    """Return the settings with the folder of the local Whisper model, unless an override has set it.

    With `asr.engine = local` it is `asr.model`: a name in the models' folder, or a path. Behind an endpoint it is the
    default model.
    """
    if "model_dir" in settings.asr.model_fields_set:
        return settings
    name = settings.asr.model if settings.asr.engine == "local" and settings.asr.model else LOCAL_RECOGNISER
    folder = base / at_home(name) if os.sep in name else settings.models.directory / name
    return settings.model_copy(update={"asr": settings.asr.model_copy(update={"model_dir": folder})})
