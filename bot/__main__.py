"""The `roomtone` command: what must be so before anything is imported, and what a failure looks like."""

from __future__ import annotations

import os
import sys

# numpy's threads spin beside the recogniser's and cost a third of a recognition's CPU for nothing; they read
# this once, when numpy is first imported (docs/decisions/0006-short-encoder-window.md).
os.environ.setdefault("OMP_NUM_THREADS", "1")


# How long a thread that wants to run waits for one that computes in Python. The bot's voice leaves in a thread of its
# own that needs the interpreter several times in 20 ms; with Python's 5 ms each it falls behind a busy event loop.
THREAD_SWITCH_S = 0.001


def main() -> None:
    """Run the command line and exit with its status."""
    sys.setswitchinterval(THREAD_SWITCH_S)
    # Imported here, after the environment is set.
    from bot.cli.app import run_command_line

    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
