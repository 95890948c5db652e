"""Private files: what Roomtone writes can be read only by the user that runs it.

Files get mode 0600 and folders 0700, whatever the umask. `bot/__main__` also sets `UMASK`, for what libraries and child
processes write.
"""

from __future__ import annotations

import os
import resource
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

UMASK = 0o077
FILE_MODE = 0o600
FOLDER_MODE = 0o700
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def forbid_core_dumps() -> None:
    """Let the system write no core dump of this process and its children: it would hold keys and what people said."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def make_private_folder(path: Path) -> None:
    """Create a folder and its missing parents with mode 0700. Existing ones stay as they are. Raises `OSError`."""
    if not path.is_dir():
        make_private_folder(path.parent)
        path.mkdir(mode=FOLDER_MODE, exist_ok=True)


def open_private(path: str, flags: int) -> int:
    """Open a file as `open` does, with mode 0600 also if it exists already. For the `opener` of `open`."""
    descriptor = os.open(path, flags, FILE_MODE)
    # Files of another user, and devices, cannot be changed; they can still be written.
    with suppress(OSError):
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, FILE_MODE)
    return descriptor


def write_private_text(path: Path, text: str) -> None:
    """Write a text file with mode 0600. Raises `OSError`, and `UnicodeEncodeError` for a text that is not Unicode."""
    with open(path, "w", encoding="utf-8", opener=open_private) as file:
        file.write(text)


def replace_private_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a text file with mode 0600 in one step: whoever reads it meanwhile finds the former one, whole.

    `durable`: wait until the text outlives a power failure under this name. Raises as `write_private_text` does.
    """
    fresh = path.with_name(f"{path.name}.new")
    write_private_text(fresh, text)
    if durable:
        sync_to_disk(fresh)
    fresh.replace(path)
    if durable:
        sync_names(path.parent)


def sync_names(folder: Path) -> None:
    """Wait until the names of the files in `folder` outlive a power failure. Some file systems cannot do this with a
    folder; the files are there all the same.
    """
    with suppress(OSError):
        sync_to_disk(folder)


def sync_to_disk(path: Path) -> None:
    """Wait until what is in the file at `path` outlives a power failure. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private_files(database: Path) -> None:
    """Create a SQLite database with mode 0600, so that SQLite makes its journals alike, and mend existing ones.

    Raises `OSError` if the database cannot be created.
    """
    with suppress(PermissionError):
        os.close(open_private(str(database), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC))
    for journal in database.parent.glob(f"{database.name}-*"):
        with suppress(OSError):
            journal.chmod(FILE_MODE)
