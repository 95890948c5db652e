"""A process that is a room worker and offers nothing: what `roomtone cluster rooms --worker` is to its actor.

Its words are the worker's folder and `fails`, for one that fails, `talks`, for one that says much, and at SIGUSR1
one line more, or `lingers`, for one that notes each SIGTERM in `SIGNALS_FILE` and ends at SIGUSR1. SIGTERM ends the
others.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from bot.cluster.worker_folder import OfferedProcesses, WorkerFolder
from bot.cluster.worker_output import MOST_BYTES

LINE = "A library says this again and again.\n"
ONE_MORE = "One more."
SIGNALS_FILE = "signals"


def main(path: str, *more: str) -> None:
    """Be the worker until a signal."""
    folder = WorkerFolder(Path(path))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if "fails" in more:
        sys.exit("There is no database.")
    if "talks" in more:
        signal.signal(signal.SIGUSR1, lambda *_: os.write(1, f"{ONE_MORE}\n".encode()))
        sys.stdout.write(LINE * (MOST_BYTES // len(LINE) + 1))
        sys.stdout.flush()
    if "lingers" in more:
        signals = folder.path / SIGNALS_FILE
        signal.signal(signal.SIGTERM, lambda *_: signals.write_text(f"{signals.read_text()}x"))
        signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))
        signals.write_text("")
    folder.write_processes(OfferedProcesses(busy=1, waiting=1))
    while True:
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
