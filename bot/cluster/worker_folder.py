"""A room worker on this machine: a folder in which its process, its actor and `cluster up` find each other.

The process that offers rooms has the folder from its first moment to its last. So there is never more than one of it on
a machine, and it is seen by who did not start it. Its actor has the folder `keeper` below. A worker whose process lives
without a keeper is left behind: its actor was killed, or Ray is away.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from bot.cluster.running_process import PROCESS_FILE, for_a_child, occupied, running_process
from bot.cluster.worker_output import last_line, last_warning
from bot.private_files import replace_private_text, write_private_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

# Below the cluster's folder.
WORKERS: Final = "workers"
KEEPER: Final = "keeper"
OUTPUT_FILE: Final = "output.log"
_ROOMS_FILE: Final = "rooms.json"
# The number of the process that was asked to hand over.
_ASKED_FILE: Final = "handing-over.pid"
_COMMAND_FILE: Final = "command.json"


# Without slots: see `bot.cluster.transcription.PooledUtterance`.
@dataclass(frozen=True)
class OfferedProcesses:
    """The room processes of a worker. `busy`: with rooms. `waiting`: loaded, without a room. `loading`: not yet."""

    busy: int = 0
    waiting: int = 0
    loading: int = 0


@dataclass(frozen=True, slots=True)
class WorkerFolder:
    """The folder of one worker. `path`: its last part is the worker's name."""

    path: Path

    @property
    def name(self) -> str:
        """Return the worker's name."""
        return self.path.name

    @property
    def output(self) -> Path:
        """Return the file with what the process and those of its rooms have said last (`worker_output`)."""
        return self.path / OUTPUT_FILE

    @property
    def process(self) -> int | None:
        """Return the process that offers rooms; None if there is none."""
        return running_process(self.path)

    @property
    def is_kept(self) -> bool:
        """Return whether an actor on this machine keeps the process."""
        return running_process(self.path / KEEPER) is not None

    def keeping(self) -> AbstractContextManager[None]:
        """Be the worker's actor during the block. Raises `FolderInUseError` if there is one, `SetupError`."""
        return occupied(self.path / KEEPER)

    def hand_over(self) -> None:
        """Ask the process, if there is one, to hand its rooms over and to end. Once, whoever asks: a second signal
        would end it in the midst of that (`bot.cli.signals`).
        """
        process = self.process
        if process is None or self._was_asked(process):
            return
        with suppress(OSError):
            write_private_text(self.path / _ASKED_FILE, str(process))
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)

    def _was_asked(self, process: int) -> bool:
        with suppress(OSError, ValueError):
            return int((self.path / _ASKED_FILE).read_text("ascii")) == process
        return False

    @contextmanager
    def starting(self, command: Sequence[str]) -> Iterator[int]:
        """Start the process of this command in the block: it must inherit the descriptor that this yields, and its
        number must be written into `process_file`.

        Raises `FolderInUseError` if there is one, `SetupError` and `OSError`.
        """
        with for_a_child(self.path) as descriptor:
            # The system may give the next process the number of one before it.
            (self.path / _ASKED_FILE).unlink(missing_ok=True)
            write_private_text(self.path / _COMMAND_FILE, json.dumps(list(command)))
            self.write_processes(OfferedProcesses())
            yield descriptor

    @property
    def process_file(self) -> Path:
        """Return the file with the number of the process."""
        return self.path / PROCESS_FILE

    def has_command(self, command: Sequence[str]) -> bool:
        """Return whether the process was started with this command."""
        with suppress(OSError, ValueError):
            told: object = json.loads((self.path / _COMMAND_FILE).read_text("utf-8"))
            return told == list(command)
        return False

    def write_processes(self, processes: OfferedProcesses) -> None:
        """Tell the actor about the room processes. Raises `OSError`."""
        replace_private_text(self.path / _ROOMS_FILE, json.dumps(asdict(processes)))

    def read_processes(self) -> OfferedProcesses:
        """Return the room processes, as the worker's process has told them last."""
        with suppress(OSError, ValueError, TypeError):
            return OfferedProcesses(**json.loads((self.path / _ROOMS_FILE).read_text("utf-8")))
        return OfferedProcesses()

    def last_words(self) -> str:
        """Return the last line that the process has said; empty if there is none."""
        return last_line(self.output)

    def last_warning(self) -> str:
        """Return the last warning or error of the process and those of its rooms; empty if there is none."""
        return last_warning(self.output)


def workers_here(cluster_folder: Path) -> list[WorkerFolder]:
    """Return the workers of this machine that have, or had, a process."""
    with suppress(OSError):
        return [WorkerFolder(path) for path in sorted((cluster_folder / WORKERS).iterdir()) if path.is_dir()]
    return []


def worker_folder(cluster_folder: Path, name: str) -> WorkerFolder:
    """Return the folder of a worker on this machine."""
    return WorkerFolder(cluster_folder / WORKERS / name)
