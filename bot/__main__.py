"""The `roomtone` command. Sets process-wide options that must precede all other imports, then runs the command line."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from bot.runtime_tuning import limit_arenas

# numpy's threads keep spinning beside those of the recogniser, and waste a third of the CPU time of each recognition.
# numpy reads this variable once, when it is first imported (docs/decisions/0006-short-encoder-window.md).
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The recogniser's library compiles code for each length of speech that it has not met, 1.2 MB each time with the base
# model, and keeps 1,024 pieces of it: some 270 MB after hours. A recognition needs eight, and compiling is cheap.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16")
# Before there are threads: libraries start some when they are imported.
limit_arenas()

# How long a waiting thread lets another one compute in Python. The thread that sends the bot's voice needs the
# interpreter several times in 20 ms; with Python's default of 5 ms it falls behind a busy event loop.
THREAD_SWITCH_S = 0.001


def main() -> None:
    sys.setswitchinterval(THREAD_SWITCH_S)
    # Imported here, after the environment is set.
    from bot import private_files
    from bot.cli.app import run_command_line

    if isinstance(sys.stdout, TextIOWrapper):
        # As stderr does it: a terminal that lacks a letter gets its number.
        sys.stdout.reconfigure(errors="backslashreplace")
    os.umask(private_files.UMASK)
    private_files.forbid_core_dumps()

    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
