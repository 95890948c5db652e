"""Loads the settings from defaults, the operator's file, the environment and overrides. A later source overrides an
earlier one.

The defaults come from the schema. `default.toml` is written from the schema for people and is not read here, so an
edited copy changes nothing.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from config.errors import ConfigError
from config.location import (
    CONFIG_VARIABLE,
    ENV_FILE,
    SettingsLocation,
    at_home,
    find_location,
    location_in,
    named_location,
    running_checkout,
)
from config.near_misses import near_misses, without_quotes
from config.problems import BUILT_IN, SettingOrigin, example, from_validation
from config.schema import INTERNAL, SETTINGS, Settings
from config.sources import (
    ENVIRONMENT,
    OVERRIDE,
    GivenValue,
    SourceReading,
    Variable,
    read_env_file,
    read_overrides,
    read_toml,
    read_variables,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from config.schema import Key


# The folder that systemd makes for a service's credentials, and ours in it (deploy/roomtone.service).
CREDENTIALS_VARIABLE = "CREDENTIALS_DIRECTORY"
CREDENTIALS_FILE = "env"
# The model that hears where no other is named.
LOCAL_RECOGNISER = "whisper-base"
# Where the bot's data and models are.
_PLACES = frozenset({("storage", "data_dir"), ("storage", "database_url"), ("models", "directory")})


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
    benchmarks; they may set internal fields. `notify` is called with a sentence for each variable in `.env` that is
    probably meant to be another.

    Raises `ConfigError` with every mistake in all sources.
    """
    sources, base = _read(directory, environ, overrides or {})
    for notice in (notice for source in sources for notice in source.notices):
        notify(notice)
    return _with_local_recogniser(_assemble(sources), base)


def load_places() -> Settings:
    """Return the defaults with the folders and the database that the operator has set, for whoever goes on although
    `load` has found mistakes. If one of these is mistaken itself, all are the defaults.
    """
    try:
        sources, base = _read(None, None, {})
        places = [
            SourceReading(given=[each for each in source.given if each.key in _PLACES and _blank(each) is None])
            for source in sources
        ]
        settings = _assemble(places)
    except ConfigError:
        # Also of a folder that is not to be trusted.
        return Settings()
    return _with_local_recogniser(settings, base)


def _read(
    directory: Path | None, environ: Mapping[str, str] | None, overrides: Mapping[str, object]
) -> tuple[list[SourceReading], Path]:
    """Return what each source has, the least important first, and the folder where relative paths start. Raises
    `ConfigError` if there are settings that may not be used.
    """
    working = directory if directory is not None else Path.cwd()
    environ = environ if environ is not None else os.environ
    location = _location(working, environ, only=directory is not None)
    from_file, env_problems = read_env_file(location.folder / ENV_FILE)
    credentials, more_problems = _credentials(environ)
    env_problems += more_problems
    given = [*from_file, *credentials, *(Variable(name, value, ENVIRONMENT) for name, value in environ.items())]
    variables, notices = without_quotes(given)
    notices += near_misses(variables)
    location = _renamed_in_env_file(location, from_file, environ)
    sources = [
        _operators_file(location),
        SourceReading(problems=env_problems, notices=notices),
        read_variables(variables),
        read_overrides(overrides),
    ]
    if location.base != working:
        sources.insert(0, _paths_by_default(location.base))
    base = location.base if location.base != working else Path()
    return [_rooted(source, base) for source in sources], base


def settings_file() -> Path:
    """Return the operator's settings file, whether it is there or not. Raises `ConfigError`."""
    location = _location(Path.cwd(), os.environ, only=False)
    from_file, _ = read_env_file(location.folder / ENV_FILE)
    return _renamed_in_env_file(location, from_file, os.environ).file


def option(name: str, *, directory: Path | None = None, environ: Mapping[str, str] | None = None) -> str | None:
    """Return what a variable of a command's option says, in the environment or in `.env`; None: nothing."""
    working = directory if directory is not None else Path.cwd()
    environ = environ if environ is not None else os.environ
    location = _location(working, environ, only=directory is not None)
    from_file, _ = read_env_file(location.folder / ENV_FILE)
    credentials, _ = _credentials(environ)
    given, _ = without_quotes(
        [*from_file, *credentials, *(Variable(each, value, ENVIRONMENT) for each, value in environ.items())]
    )
    found = [each.value.strip() for each in given if each.name == name and each.value.strip()]
    return found[-1] if found else None


def _credentials(environ: Mapping[str, str]) -> tuple[list[Variable], list[str]]:
    """Return the variables of the file that systemd hands the service (`LoadCredential=env:…`), and its mistakes."""
    folder = environ.get(CREDENTIALS_VARIABLE)
    return read_env_file(Path(folder) / CREDENTIALS_FILE) if folder else ([], [])


def _location(working: Path, environ: Mapping[str, str], *, only: bool) -> SettingsLocation:
    if only and not environ.get(CONFIG_VARIABLE, "").strip():
        return location_in(working)
    return find_location(working, environ, checkout=running_checkout())


def _renamed_in_env_file(
    location: SettingsLocation, from_file: Sequence[Variable], environ: Mapping[str, str]
) -> SettingsLocation:
    """Return the location with the file that ROOMTONE_CONFIG in `.env` names, if the environment names none."""
    named = [each.value for each in from_file if each.name == CONFIG_VARIABLE and each.value.strip()]
    if not named or environ.get(CONFIG_VARIABLE, "").strip():
        return location
    return replace(location, file=named_location(location.folder, named[-1]).file, named=True)


def _operators_file(location: SettingsLocation) -> SourceReading:
    if location.named:
        return read_toml(location.file, name=str(location.file))
    return read_toml(location.file, name=location.file.name) if location.file.exists() else SourceReading()


def _paths_by_default(base: Path) -> SourceReading:
    """Return the defaults of the settings that are paths, as paths in `base`."""
    return SourceReading(
        given=[
            GivenValue(setting.key, base / setting.default, BUILT_IN)
            for setting in SETTINGS.values()
            if isinstance(setting.default, Path)
        ]
    )


def _rooted(source: SourceReading, base: Path) -> SourceReading:
    """Return a source whose relative paths start at `base`, and in which `~` is somebody's home.

    Paths that somebody typed, in an option or in the shell's environment, start at the working directory.
    """

    def rooted(given: GivenValue) -> GivenValue:
        setting = SETTINGS.get(given.key)
        typed = given.origin == OVERRIDE or given.origin.place.endswith(f"({ENVIRONMENT})")
        if (
            setting is None
            or not setting.path
            or not isinstance(given.value, str)
            # An empty one is a mistake (`_blank`), or a setting's default.
            or not given.value.strip()
        ):
            return given
        path = at_home(given.value)
        return replace(given, value=str(path if typed else base / path))

    return replace(source, given=[rooted(each) for each in source.given])


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


def _assemble(sources: Sequence[SourceReading]) -> Settings:
    """Merge the sources (a later one overrides an earlier one) and validate the result."""
    problems = [problem for found in sources for problem in found.problems]
    tree: dict[str, Any] = {}
    origins: dict[Key, SettingOrigin] = {}
    for given in (given for found in sources for given in found.given):
        if (blank := _blank(given)) is not None:
            problems.append(blank)
            continue
        branch = tree
        for part in given.key[:-1]:
            branch = branch.setdefault(part, {})
        branch[given.key[-1]] = given.value
        origins[given.key] = given.origin
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as exc:
        # `from None`: the original error message contains values, including secrets.
        raise ConfigError((*problems, *from_validation(exc, origins))) from None
    if problems:
        raise ConfigError(tuple(problems))
    return settings


def _blank(given: GivenValue) -> str | None:
    """Return a sentence for a text without a letter where one is needed; None: there is nothing wrong.

    An empty path is the working directory: the database would be wherever the command is typed.
    """
    setting = SETTINGS.get(given.key) or INTERNAL.get(given.key)
    if setting is None or not isinstance(given.value, str) or given.value.strip(" \t\r\n\0"):
        return None
    is_needed = any((getattr(each, "min_length", None) or 0) > 0 for each in setting.field.metadata)
    if given.value == "" == setting.default or not (setting.path or is_needed or setting.key[-1] == "model"):
        return None
    return (
        f"{setting.name} in {given.origin.place} is empty. Name a {'path' if setting.path else 'text'}, or delete the "
        f"line. For example: {example(setting, given.origin)}"
    )
