"""Where a room's process on the same machine finds the gateway process: a file that only its user can read.

A gateway process that is started again writes another address and another token, so that rooms which ran on find it.
Processes on other machines know its address, and have the cluster's token (`bot.cluster.address`).
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.errors import SetupError
from bot.private_files import replace_private_text
from bot.texts.text import Text

if TYPE_CHECKING:
    from pathlib import Path

# In the data folder of the gateway process.
_NAME = "rooms-link"
UNREADABLE = Text("Where the bot's own processes reach it cannot be read from {file}. Start the bot again.")


@dataclass(frozen=True, slots=True)
class LinkAddress:
    """Where the gateway process listens, and the token that opens a link there."""

    url: str
    token: str


def link_file(data_dir: Path) -> Path:
    """Return the file from which rooms' processes on this machine learn where the bot is."""
    return data_dir / _NAME


def new_token() -> str:
    """Return a token that nobody has yet."""
    return secrets.token_urlsafe(32)


def write_link(file: Path, address: LinkAddress) -> None:
    """Write an address. Whoever reads the file meanwhile finds the former one. Raises `OSError`."""
    replace_private_text(file, f"{address.url}\n{address.token}\n")


def read_link(file: Path) -> LinkAddress:
    """Return the address in a file. Raises `SetupError`."""
    try:
        url, token = file.read_text(encoding="ascii").split()
    except (OSError, ValueError) as error:
        raise SetupError(UNREADABLE.fill(file=str(file))) from error
    return LinkAddress(url, token)


def folder_mark(file: Path) -> str:
    """Return the mark of the data folder with this file: two processes with the same one use the same folder. It tells
    nothing of the token. Empty if there is no address.
    """
    try:
        return hashlib.sha256(f"folder {read_link(file).token}".encode()).hexdigest()
    except SetupError:
        return ""
