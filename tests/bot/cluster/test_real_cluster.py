"""Real clusters hear, lose a recogniser or a machine, and end, in networks of their own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.bot.cluster.in_own_network import command, has_own_networks

if TYPE_CHECKING:
    from pathlib import Path

# What each file has tried when it ends well. `make endurance` runs the others, which take minutes.
TESTS = {
    "own_network.py": "the contract of recognisers, a wrong token, growing, a killed recogniser, and the end",
    "own_gpu.py": "recognisers that share a GPU, and more of them with smaller parts",
    "own_machines.py": "three machines, of which one is drained and one killed while people speak",
}


@pytest.mark.skipif(
    not has_own_networks(), reason="needs the right to make a network of its own (Linux, root), and `ip`"
)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file", TESTS)
def test_a_real_cluster(tmp_path: Path, file: str) -> None:
    """The tests of the file hold in a cluster of its own."""
    run = subprocess.run(command(file, tmp_path / "own"), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
