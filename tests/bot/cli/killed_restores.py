"""Kills `roomtone restore` at many moments, each time in a process and a copy of the data folder of its own.

Run as `python -m tests.bot.cli.killed_restores DATA_DIR BACKUP OUT SEED`. A first restore, in OUT/whole, counts the
moments: each file that Python opens, renames, links or removes in the data folder, and every thousand steps of
SQLite. Then one restore after the other is killed in OUT/<number>, at random moments and at each one at which a file
gets another name. Printed is one line for each: its folder and the kind of the moment.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.cli.app import run_command_line

if TYPE_CHECKING:
    from collections.abc import Callable

RANDOM_MOMENTS = 5
# The kinds of moments at which the folder changes for good.
NAMING = ("os.link", "os.rename")
IN_SQLITE = "sqlite3"
STEPS = 1_000


def watch(folder: Path, moment: Callable[[str], None]) -> None:
    """Call `moment` with its kind before each step that this process makes in `folder`."""

    connect = sqlite3.connect

    def watched(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **kwargs)
        connection.set_progress_handler(lambda: moment(IN_SQLITE), STEPS)
        return connection

    def on_event(event: str, values: tuple[object, ...]) -> None:
        if event in {"open", "os.remove", *NAMING} and str(values[0]).startswith(str(folder)):
            moment(event)

    sqlite3.connect = watched  # type: ignore[assignment]
    sys.addaudithook(on_event)


def restore_in_child(folder: Path, file: str, kill_at: int | None) -> list[str]:
    """Restore in a process of its own, killed at that moment, and return the kinds of the moments that it reached."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        count = 0

        def moment(kind: str) -> None:
            nonlocal count
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            os.write(writing, f"{kind}\n".encode())

        os.environ["ROOMTONE_STORAGE__DATA_DIR"] = str(folder)
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - it ends with the process
        watch(folder, moment)
        os._exit(run_command_line(["restore", file, "--yes"]))
    os.close(writing)
    with os.fdopen(reading, encoding="ascii") as told:
        reached = told.read().split()
    _, status = os.waitpid(pid, 0)
    wanted = 0 if kill_at is None else -signal.SIGKILL
    assert os.waitstatus_to_exitcode(status) == wanted, (status, reached)
    return reached


def main(data_dir: Path, file: str, out: Path, seed: int) -> None:
    """Restore once to the end, then kill."""

    def fresh(name: str) -> Path:
        return Path(shutil.copytree(data_dir, out / name))

    reached = restore_in_child(fresh("whole"), file, None)
    naming = [number for number, kind in enumerate(reached) if kind in NAMING]
    chosen = {*naming, naming[-1] + 1, *random.Random(seed).sample(range(len(reached)), RANDOM_MOMENTS)}
    for number in sorted(chosen):
        restore_in_child(fresh(str(number)), file, number)
        sys.stdout.write(f"{number} {reached[number]}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
