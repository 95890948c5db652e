"""Finds the folder of the operator's settings, so that the command works from any folder.

The first of these that is there:

1. the file or folder that `roomtone --config` or ROOMTONE_CONFIG names;
2. the working directory, if Roomtone's settings or memory are in it;
3. the checkout that the program runs from;
4. the user's folders for settings and data (XDG: ~/.config/roomtone and ~/.local/share/roomtone).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# The path of the operator's file, or of its folder. It is not a setting.
CONFIG_VARIABLE = "ROOMTONE_CONFIG"
# The shards of `roomtone run --shards`: each process has its own, so it is no setting either.
SHARDS_VARIABLE = "ROOMTONE_SHARDS"
OPTION_VARIABLES = (CONFIG_VARIABLE, SHARDS_VARIABLE)
FILE_NAME = "roomtone.toml"
ENV_FILE = ".env"
# A bot that is configured by the environment alone has neither file, but it has its memory.
_MARKS = (FILE_NAME, ENV_FILE, "data/roomtone.db")


@dataclass(frozen=True, slots=True)
class SettingsLocation:
    """Where the settings are. `folder`: has `.env`. `file`: the operator's file. `named`: the operator named it, so it
    must exist. `base`: where relative paths in the settings start.
    """

    folder: Path
    file: Path
    base: Path
    named: bool = False


def find_location(working: Path, environ: Mapping[str, str], *, checkout: Path | None) -> SettingsLocation:
    """Return where the settings are for a command that is started in `working`.

    `checkout`: the source tree that the program runs from, None if it is installed.
    """
    if named := environ.get(CONFIG_VARIABLE, "").strip():
        return _named_location(working, named)
    # `Path.exists` raises for a folder that may not be looked into: `sudo -u` leaves people in their own home.
    if any(os.path.exists(working / mark) for mark in _MARKS):  # noqa: PTH110 - see above
        return location_in(working)
    return _users_location(environ) if checkout is None else location_in(checkout)


def location_in(folder: Path) -> SettingsLocation:
    """Return the location of the settings in this folder, whether there are any or not."""
    return SettingsLocation(folder, folder / FILE_NAME, folder)


def at_home(path: str) -> Path:
    """Return a path in which `~` at the beginning is somebody's home. It stays if nobody is called so."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def running_checkout() -> Path | None:
    """Return the source tree that this program runs from, or None if it is installed elsewhere."""
    root = Path(__file__).resolve().parents[1]
    return root if (root / "pyproject.toml").is_file() and (root / "uv.lock").is_file() else None


def _named_location(working: Path, name: str) -> SettingsLocation:
    """Return the location that somebody named: a file, or a folder that has one, or only `.env` or a memory."""
    path = working / at_home(name)
    if not path.is_dir():
        return SettingsLocation(path.parent, path, path.parent, named=True)
    return SettingsLocation(path, path / FILE_NAME, path, named=not any((path / mark).exists() for mark in _MARKS[1:]))


def _users_location(environ: Mapping[str, str]) -> SettingsLocation:
    def folder(variable: str, usual: str) -> Path:
        # The XDG specification says to ignore relative paths.
        given = Path(environ.get(variable, ""))
        return (given if given.is_absolute() else Path.home() / usual) / "roomtone"

    settings = folder("XDG_CONFIG_HOME", ".config")
    return SettingsLocation(settings, settings / FILE_NAME, folder("XDG_DATA_HOME", ".local/share"))
