"""Finds the folder of the operator's settings, so that the command works from any folder.

The first of these that is there:

1. the file or folder that `roomtone --config` or ROOMTONE_CONFIG names;
2. the working directory, if Roomtone's settings or memory are in it;
3. the checkout that the program runs from;
4. the user's folders for settings and data (XDG: ~/.config/roomtone and ~/.local/share/roomtone).

What another user may have put into the working directory is not used (`config.folder_trust`): the command ends with a
sentence, because it would be meant for other settings than those that come next.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from config.errors import ConfigError
from config.folder_trust import Ownership, distrust, trusted_users

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

    `checkout`: the source tree that the program runs from, None if it is installed. Raises `ConfigError` if the
    settings in `working` may be somebody else's.
    """
    named = environ.get(CONFIG_VARIABLE, "").strip()
    if named:
        return named_location(working, named)
    # A folder that may not be looked into has none: `sudo -u` leaves people in their own private home.
    marks = (working / mark for mark in _MARKS)
    found = {mark: owned for mark in marks if (owned := Ownership.of(mark)) is not None}
    if found:
        # Whoever can write into the checkout decides what the program itself does.
        if checkout is None or working.resolve() != checkout:
            _require_trusted(working, found)
        return location_in(working)
    if checkout is not None:
        return location_in(checkout)
    return _users_location(environ)


def _require_trusted(folder: Path, files: Mapping[Path, Ownership]) -> None:
    users, folder_is = trusted_users(), Ownership.of(folder)
    if users is None or folder_is is None:
        return
    for file, file_is in files.items():
        if (reason := distrust(folder, folder_is, file, file_is, users)) is not None:
            raise ConfigError((f"The settings in {folder} are not used: {reason}",))


def named_location(working: Path, name: str) -> SettingsLocation:
    """Return the location that somebody named: a file, or a folder that has one, or only `.env` or a memory."""
    path = working / at_home(name)
    if not path.is_dir():
        return SettingsLocation(path.parent, path, path.parent, named=True)
    file = path / FILE_NAME
    return SettingsLocation(path, file, path, named=all(Ownership.of(path / mark) is None for mark in _MARKS[1:]))


def at_home(path: str) -> Path:
    """Return a path in which `~` at the beginning is somebody's home. It stays if nobody is called so."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def location_in(folder: Path) -> SettingsLocation:
    """Return the location of the settings in this folder, whether there are any or not."""
    return SettingsLocation(folder, folder / FILE_NAME, folder)


def running_checkout() -> Path | None:
    """Return the source tree that this program runs from, or None if it is installed elsewhere."""
    root = Path(__file__).resolve().parents[1]
    return root if (root / "pyproject.toml").is_file() and (root / "uv.lock").is_file() else None


def _users_location(environ: Mapping[str, str]) -> SettingsLocation:
    def folder(variable: str, usual: str) -> Path:
        # The XDG specification says to ignore relative paths.
        given = Path(environ.get(variable, ""))
        return (given if given.is_absolute() else Path.home() / usual) / "roomtone"

    settings = folder("XDG_CONFIG_HOME", ".config")
    return SettingsLocation(settings, settings / FILE_NAME, folder("XDG_DATA_HOME", ".local/share"))
