"""A process that is a room worker and offers nothing: what `roomtone cluster rooms --worker` is to its actor.

Its words are the worker's folder and, for one that fails, `fails`. SIGTERM ends it.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from bot.cluster.worker_folder import OfferedProcesses, WorkerFolder


def main(path: str, *more: str) -> None:
    """Be the worker until a signal."""
    folder = WorkerFolder(Path(path))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if "fails" in more:
        sys.exit("There is no database.")
    folder.write_processes(OfferedProcesses(busy=1, waiting=1))
    while True:
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
