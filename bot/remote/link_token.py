"""The token with which a room's process on the same machine opens its link: a file that only its user can read.

Processes on other machines have the cluster's token (`bot.cluster.address`).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from bot.errors import SetupError
from bot.private_files import write_private_text
from bot.texts.text import Text

if TYPE_CHECKING:
    from pathlib import Path


def write_link_token(file: Path) -> str:
    """Write a new token into a file, and return it. Raises `OSError`."""
    token = secrets.token_urlsafe(32)
    write_private_text(file, token)
    return token


def read_link_token(file: Path) -> str:
    """Return the token in a file. Raises `SetupError`."""
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise SetupError(
            Text(
                "The token for the bot's own processes cannot be read from {file}. Start the bot again.", file=str(file)
            )
        ) from error
    return token
