"""Keeps the retention time of log lines on a machine that has rooms of a bot elsewhere.

The bot's own log is kept by `bot.memory.retention`, with all that is stored. A machine that only has rooms stores
nothing but its log.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from bot.errors import SetupError
from bot.folder_lock import FolderInUseError, folder_lock
from bot.logs.removal import drop_lines_before

if TYPE_CHECKING:
    from pathlib import Path

    from bot.clock import Clock

log = structlog.get_logger()

DAY_S: Final = 24 * 3600.0
# When to try again after a failure, or while another process of the machine does it.
RETRY_S: Final = 3600.0


async def keep_log_lines(folder: Path, days: float, clock: Clock) -> None:
    """Remove the lines in `folder` that are older than `days`, now and once a day, until cancelled. 0: they stay."""
    while days:
        await clock.sleep(await _dropped(folder, clock.now() - days * DAY_S))


async def _dropped(folder: Path, before: float) -> float:
    """Return in how many seconds to work again."""
    try:
        with folder_lock(folder):
            lines = await asyncio.to_thread(drop_lines_before, folder, before)
    except FolderInUseError:
        return RETRY_S
    except (SetupError, OSError) as error:
        log.warning("log_lines_not_deleted", problem=error, retry_s=RETRY_S)
        return RETRY_S
    log.info("log_lines_deleted", log_lines=lines)
    return DAY_S
