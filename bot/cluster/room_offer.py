"""What a room worker offers to which bot, and what it reserves of its machine."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

from bot.cluster.resources import cpus_in_words, gpus_in_words
from bot.errors import SetupError

# A loaded process has 457 MB, and a room's memory, sound and texts come to it.
PROCESS_BYTES: Final = 600_000_000
# What a process has besides where no cluster's recognisers hear for it: the model that reads what was recognised
# (181 MB), and a second copy of whisper-base (88 MB).
HEARING_BYTES: Final = 300_000_000
# For each further room that shares a process, which has no models of its own. Generous, not measured.
ROOM_BYTES: Final = 100_000_000
# Processes of a worker, where nobody says how many.
PROCESSES: Final = 4
# The operator's word for rooms that use no cluster's recognisers.
NO_POOL: Final = "none"
# A mistyped number must not fill a cluster.
MOST_WORKERS: Final = 256


# Without slots: see `bot.cluster.transcription.PooledUtterance`.
@dataclass(frozen=True)
class RoomOffer:
    """`gateway`: HOST:PORT where the bot listens. `processes`: how many there are at most, each for `rooms_each` rooms;
    `waiting` of them are loaded and wait for the next rooms. `cluster`: whose recognisers the rooms use, as in
    `roomtone run`; None: only their own.

    `cpus`, `gpus`: what a worker reserves, whether or not it has rooms. Raises `SetupError` for less than nothing, and
    if more should wait than there are.
    """

    gateway: str
    processes: int = PROCESSES
    rooms_each: int = 1
    cluster: str | None = None
    waiting: int = 1
    cpus: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if self.cpus < 0 or self.gpus < 0:
            raise SetupError("A room worker cannot reserve less than nothing: give CPUs and GPUs of 0 or more.")
        if self.waiting > self.processes:
            raise SetupError(
                f"There are fewer processes (--rooms, {self.processes}) than shall wait (--waiting, {self.waiting}). "
                "Give more --rooms."
            )

    @property
    def memory_bytes(self) -> int:
        """Return the memory that each worker reserves."""
        hearing = HEARING_BYTES if self.cluster is None else 0
        return self.processes * (PROCESS_BYTES + hearing + (self.rooms_each - 1) * ROOM_BYTES)

    @property
    def needs(self) -> str:
        """Return what a machine must have free for one more worker."""
        and_gpus = f" and {gpus_in_words(self.gpus)}" if self.gpus else ""
        return f"{cpus_in_words(self.cpus)}, {self.memory_bytes / 1e9:.1f} GB{and_gpus}"

    def command(self, worker: str) -> list[str]:
        """Return the command of a worker's process."""
        return [sys.executable, "-m", "bot", "cluster", *self._words, "--worker", worker]

    def asking(self, count: int) -> list[str]:
        """Return the command of `roomtone cluster` that asks for `count` workers with this offer."""
        reserved = ("--cpus", str(self.cpus), "--gpus", str(self.gpus))
        return [*self._words, "--workers", str(count), *reserved]

    @property
    def _words(self) -> list[str]:
        words = ["rooms", "--gateway", self.gateway, "--rooms", str(self.processes)]
        words += ["--rooms-each", str(self.rooms_each), "--waiting", str(self.waiting)]
        return [*words, "--cluster", self.cluster or NO_POOL]


def workers_count(count: int) -> int:
    """Return the number of workers. Raises `SetupError` for too many."""
    if not 0 <= count <= MOST_WORKERS:
        raise SetupError(f"A cluster has between 0 and {MOST_WORKERS} room workers; {count} is none of them.")
    return count
