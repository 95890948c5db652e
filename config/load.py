"""The settings in force: defaults, the operator's file, the environment and overrides, each over the one before.

The defaults are the schema's own. `default.toml` says the same for people, is written out of the schema by
`document`, and is held to it by a test; it is not read here, so that an edited copy cannot mislead.
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
    """Return the settings in force.

    The operator's file is the one that ROOMTONE_CONFIG names, else `roomtone.toml` in `directory` if there is one.
    `directory`: where that and `.env` are looked for, by default the working directory. `environ`: by default the
    process's; it wins over `.env`. `overrides`: values by dotted name, stronger than all else, for a caller that
    composes (the rehearsal). `notify` gets a sentence for each retired key that is still set.

    Raises `ConfigError` with every mistake found, in all sources at once.
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
    """Lay the sources over one another, the later the stronger, and validate the whole."""
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
        # from None: the original message shows values, secrets among them.
        raise ConfigError((*problems, *from_validation(exc, origins))) from None
    if problems:
        raise ConfigError(tuple(problems))
    return settings
