"""Whether files can be read, and what to do if not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

GIVE_RIGHTS = "Give the user that runs the bot the right to read it."


def why_unreadable(folder: Path) -> str | None:
    """Return why the folder or a file in it cannot be read. None if all can be read or there is no folder."""
    try:
        for path in folder.iterdir() if is_there(folder) else ():
            if path.is_file():
                with path.open("rb") as file:
                    file.read(1)
    except NotADirectoryError:
        return None
    except OSError as error:
        return describe_unreadable(error, folder)
    return None


def is_there(path: Path) -> bool:
    """Return whether a path exists. Raises OSError if access is denied."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def describe_unreadable(error: OSError, path: Path) -> str:
    """Return why `path`, or the file in it that the error names, cannot be read."""
    return f"{error.filename or path} cannot be read: {error.strerror or type(error).__name__}."
