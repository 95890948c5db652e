"""A process that has a place and offers nothing: what `roomtone cluster rooms --place` is to its actor.

Its words are the place's folder and, for one that fails, `fails`. SIGTERM ends it.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from bot.cluster.place_folder import OfferedProcesses, PlaceFolder


def main(path: str, *more: str) -> None:
    """Have the place until a signal."""
    folder = PlaceFolder(Path(path))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if "fails" in more:
        sys.exit("There is no database.")
    folder.write_processes(OfferedProcesses(busy=1, waiting=1))
    while True:
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
