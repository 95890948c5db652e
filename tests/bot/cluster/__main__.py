"""`python -m tests.bot.cluster FILE`: runs the tests of real machines in a file, in a network of their own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bot.cluster.in_own_network import command

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run a file and return pytest's exit status. `arguments`: the file's name, and options for pytest."""
    with tempfile.TemporaryDirectory(prefix="roomtone-machines-") as folder:
        return subprocess.run(command(arguments[0], Path(folder) / "own", *arguments[1:]), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
