"""Runs tests of real machines in a network, and with processes, of their own, which end together."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE = Path(__file__).parent
# The process that ends the block ends everything in it.
_OWN: Final = ("unshare", "--net", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc")
# Loopback is down in a new network. The shell stays as the first process, which must collect those whose parents have
# ended: who waits for one that nobody collects, as pg_ctl and Ray do, waits in vain.
_SCRIPT: Final = 'ip link set lo up && echo machine1 >/proc/sys/kernel/hostname && { "$@"; exit; }'


def has_own_networks() -> bool:
    """Return whether this system lets its user make networks."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    return subprocess.run([*_OWN, "true"], capture_output=True, check=False).returncode == 0


def command(file: str, folder: Path, *options: str) -> list[str]:
    """Return the command that runs the tests of a file. `folder`: of its machines. `options`: of pytest."""
    alone = ("-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={folder}")
    inner = [sys.executable, "-m", "pytest", "-q", *alone, *options, str(HERE / file)]
    return [*_OWN, "sh", "-c", _SCRIPT, "sh", *inner]
