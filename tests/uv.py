"""uv, with which tests install packages as people do. Without a package index such a test is skipped."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sources import ROOT


def uv_program() -> str:
    """Return the path of uv. Skips the test where there is none."""
    uv = shutil.which("uv") or next(map(str, (ROOT / ".cache" / "uv" / "bin").glob("uv")), None)
    if uv is None:
        pytest.skip("no uv is installed: `make setup` brings it")
    return uv


def run_uv(*arguments: str | Path, **environment: str) -> str:
    """Return what uv prints, started in the checkout. Fails the test if uv does."""
    ended = subprocess.run(
        [uv_program(), *arguments, "--quiet"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    if ended.returncode and re.search("error sending request|dns error|Connection refused|timed out", ended.stderr):
        pytest.skip("the package index cannot be reached")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def locked_versions(*arguments: str) -> str:
    """Return the requirements of the lock file that `uv export` gives for these arguments."""
    return run_uv("export", "--frozen", "--no-hashes", "--no-emit-project", *arguments)
