"""Real clusters hear, lose a recogniser or a machine, and end, in networks of their own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Loopback is down in a new network. The process that ends the block ends everything in it.
OWN_NETWORK = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
# What each file has tried when it ends well.
TESTS = {
    "own_network.py": "the contract of recognisers, a wrong token, a killed recogniser, and the end of the cluster",
    "own_machines.py": "three machines, of which one is drained and one killed while people speak",
}


def _has_own_networks() -> bool:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    return subprocess.run([*OWN_NETWORK, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(
    not _has_own_networks(), reason="needs the right to make a network of its own (Linux, root), and `ip`"
)
@pytest.mark.parametrize("file", TESTS)
def test_a_real_cluster(tmp_path: Path, file: str) -> None:
    """The tests of the file hold in a cluster of its own."""
    inner = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        f"--basetemp={tmp_path / 'own'}",
    ]
    script = 'ip link set lo up && exec "$@"'
    run = subprocess.run(
        [*OWN_NETWORK, "sh", "-c", script, "sh", *inner, str(HERE / file)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
