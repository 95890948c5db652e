"""Decides whether settings may be used that nobody has named: only what the user or root has put into the folder.

Settings name the bot's token, its database and the programs that it starts. A file of somebody else must not decide
that because a command is typed in their folder, or in one into which everybody may write, such as /tmp.

Members of a folder's group are trusted not to change files there, because many systems give each user a group of their
own and let it write. They are not trusted to bring files. What belongs to somebody else counts where only the user and
root can have put it, such as a file that is mounted into a container.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ROOT = 0


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owns a file or folder, and its mode, as `os.stat` returns them."""

    owner: int
    mode: int

    @classmethod
    def of(cls, path: Path) -> Ownership | None:
        """Return the ownership of what `path` leads to; None if there is nothing, or if it may not be looked at."""
        try:
            found = path.stat()
        except (OSError, ValueError):
            return None
        return cls(found.st_uid, found.st_mode)


def trusted_users() -> frozenset[int] | None:
    """Return the ids of this process's user and of root. None: files have no owners on this system."""
    return frozenset({os.geteuid(), ROOT}) if hasattr(os, "geteuid") else None


def distrust(folder: Path, folder_is: Ownership, file: Path, file_is: Ownership, users: frozenset[int]) -> str | None:
    """Return why a file in a folder is not used unless it is named, with the remedy; None if it is used. Pure."""
    if folder_is.owner not in users:
        return f"{folder} belongs to another user. {_named(folder)}"
    for path, found in ((folder, folder_is), (file, file_is)):
        if found.mode & stat.S_IWOTH:
            return f"every user may write into {path}. Take that right away (`chmod o-w {path}`). {_named(folder)}"
    if file_is.owner not in users and folder_is.mode & stat.S_IWGRP:
        return f"{file} belongs to another user, who may have put it there. {_named(folder)}"
    return None


def _named(folder: Path) -> str:
    return (
        f"If you trust what is there, name it: `roomtone --config {folder}`, or ROOMTONE_CONFIG={folder}. Otherwise "
        "work in another folder."
    )
