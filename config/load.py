"""Loads the settings from defaults, the operator's file, the environment and overrides. A later source overrides an
earlier one.

The defaults come from the schema. `default.toml` is written from the schema for people and is not read here, so an
edited copy changes nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from config.errors import ConfigError
from config.problems import from_validation
from config.schema import Settings
from config.sources import (
    CONFIG_VARIABLE,
    SourceReading,
    Variable,
    read_env_file,
    read_overrides,
    read_toml,
    read_variables,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from config.problems import SettingOrigin
    from config.schema import Key

FILE_NAME = "roomtone.toml"


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

    The operator's file is the one that ROOMTONE_CONFIG names, or else `roomtone.toml` in `directory` if it exists.
    `directory`: where to look for that file and for `.env`; the default is the working directory. `environ`: the
    environment variables, which override `.env`; the default is the process's environment. `overrides`: values by
    dotted name that override everything else, for rehearsals and benchmarks; they may set internal fields. `notify` is
    called with a sentence for each retired key that is set.

    Raises `ConfigError` with every mistake in all sources.
    """
    directory = directory if directory is not None else Path.cwd()
    environ = environ if environ is not None else os.environ
    from_file, env_problems = read_env_file(directory / ".env")
    variables = [*from_file, *(Variable(name, value, "the environment") for name, value in environ.items())]
    sources = [
        _operators_file(directory, variables),
        SourceReading(problems=env_problems),
        read_variables(variables),
        read_overrides(overrides or {}),
    ]
    for notice in (notice for source in sources for notice in source.notices):
        notify(notice)
    return _assemble(sources)


def _operators_file(directory: Path, variables: Sequence[Variable]) -> SourceReading:
    named = [each.value for each in variables if each.name == CONFIG_VARIABLE and each.value.strip()]
    if named:
        path = directory / named[-1]
        return read_toml(path, name=str(path))
    usual = directory / FILE_NAME
    return read_toml(usual, name=FILE_NAME) if usual.exists() else SourceReading()


def _assemble(sources: Sequence[SourceReading]) -> Settings:
    """Merge the sources (a later one overrides an earlier one) and validate the result."""
    problems = [problem for found in sources for problem in found.problems]
    tree: dict[str, Any] = {}
    origins: dict[Key, SettingOrigin] = {}
    for given in (given for found in sources for given in (*found.given, *found.switches)):
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
