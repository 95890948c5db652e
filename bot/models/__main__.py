"""Installs one model in a process of its own: `python -m bot.models DIRECTORY NAME`.

The bot starts it when somebody chooses a voice that is not here. A process can be ended in the middle of a download,
a thread cannot. It prints nothing but, when it fails, one sentence.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from bot.errors import ModelError
from bot.models.catalogue import find_model
from bot.models.directory import ModelDirectory
from bot.models.sources import downloads_of


def main(directory: str, name: str) -> int:
    """Install the model and return the exit status."""
    try:
        entry = find_model(name)
        for _ in ModelDirectory(Path(directory)).pull(entry, downloads_of(entry)):
            pass
    except ModelError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    # A shell that starts the bot in the background lets it ignore this signal, which ends a download, and this process
    # would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(*sys.argv[1:]))
