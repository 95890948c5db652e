"""The `roomtone` command. Sets process-wide options that must precede all other imports, then runs the command line."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def interrupts_end_the_process() -> Iterator[None]:
    """Let Ctrl-C end the process at once within the block, for imports. Nothing is open then.

    Python would raise KeyboardInterrupt in the middle of a library's import. Some libraries print it and go on, so that
    the bot starts all the same; from others people get a traceback. What the parent process has chosen stays.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


with interrupts_end_the_process():
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
    """Run the command line, and end the process with its exit status."""
    sys.setswitchinterval(THREAD_SWITCH_S)
    with ExitStack() as loading:
        loading.enter_context(interrupts_end_the_process())
        # Imported here, after the environment is set.
        from bot import private_files
        from bot.cli.app import run_command_line

        if isinstance(sys.stdout, TextIOWrapper):
            # As stderr does it: a terminal that lacks a letter gets its number.
            sys.stdout.reconfigure(errors="backslashreplace")
        os.umask(private_files.UMASK)
        private_files.forbid_core_dumps()

        end(run_command_line(sys.argv[1:], on_loaded=loading.close))


def end(status: int) -> NoReturn:
    """End the process with this status.

    A thread that was abandoned while it loads a model cannot be ended. As soon as it came back to an interpreter that
    is shutting down, C++ would abort the process ("terminate called without an active exception"), so Python does not
    get that far then. What had to be closed is closed.
    """
    if any(thread.daemon for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            # It is None after a closed pipe.
            with suppress(AttributeError, OSError, ValueError):
                stream.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    main()
