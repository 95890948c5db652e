"""The models directory: lists, verifies and installs models.

A model is downloaded to a temporary folder and moved into place only when the hash of every file is right. So a broken
download is never mistaken for a model.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import ModelError, ModelSourceError
from bot.models.sources import BY_HAND
from bot.private_files import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bot.models.entry import ModelEntry
    from bot.models.sources import ModelSource
    from bot.settings import ModelsSettings
    from voice.asr.settings import AsrSettings

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
