"""The log of a command, with every secret of its settings kept out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from bot.logs import configured_logging
from config.schema import secrets_in

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from bot.logs import LogStatus
    from config.schema import Settings


def keeping_logs(settings: Settings, *, console: TextIO | None = None) -> AbstractContextManager[LogStatus]:
    """Send all logs to the file and the terminal while the context lasts, as `[logs]` and `[storage]` say.

    `console`: the terminal's stream, stderr by default.
    """
    return configured_logging(
        settings.logs, data_dir=settings.storage.data_dir, console=console, secrets=tuple(secrets_in(settings))
    )
