"""The tests of recognisers that share a GPU, on a machine of which Ray believes that it has one.

Ray gives parts of a GPU away by its books alone, so the recognisers may find none and hear on the CPU.
`test_real_cluster` starts these tests in a network of their own.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bot.cluster.address import pool_endpoint
from tests.bot.cluster.machines import FIRST_IP, Machine, build_bridge
from tests.patience import PATIENCE_S
from tests.voice.recordings import bicycle
from voice.asr.remote import RemoteRecogniser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What Ray reads instead of counting what the machine has.
RESOURCES = "RAY_OVERRIDE_RESOURCES"
# The pool's time limit is for a room. A machine that runs tests is slower.
ANSWER_S = 60.0
SPEAKERS = 6
# Run on the machine: print what Ray has left to give away of the GPU.
LEFT = """
import asyncio
from pathlib import Path
from bot.cluster.address import connected
async def left():
    async with connected(Path("data/cluster")):
        import ray
        print(ray.available_resources().get("GPU", 0.0))
asyncio.run(left())
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, whisper_model_dir: Path) -> Iterator[Machine]:
    """Yield a machine with one GPU, of which each of two recognisers reserves a half."""
    folder = tmp_path_factory.mktemp("machine")
    (folder / "roomtone.toml").write_text(f'[asr]\nmodel = "{whisper_model_dir.absolute()}"\n', encoding="utf-8")
    build_bridge()
    machine = Machine(1, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RESOURCES, '{"GPU": 1}')
        with machine.up("--recognisers", "2", "--cpus", "0.25", "--gpus", "0.5"):
            yield machine


def test_two_recognisers_share_a_gpu(machine: Machine) -> None:
    """Both hear, and Ray has nothing left of the GPU."""
    told = machine.run("cluster", "status").splitlines()
    assert told[0].startswith(f"{FIRST_IP}: ")
    assert told[0].endswith(" CPUs, 1 GPU, recognisers that hear: 2")
    assert "Recognisers that hear: 2 (running)." in told
    assert float(machine.python(LEFT).split()[-1]) == 0.0


@pytest.mark.asyncio
async def test_several_utterances_at_once_are_all_heard(machine: Machine) -> None:
    """With a part of a GPU, a recogniser takes what waits together; everybody gets the words that were said."""
    endpoint = pool_endpoint("auto", machine.folder / "data" / "cluster")
    async with (
        RemoteRecogniser(replace(endpoint, timeout_s=ANSWER_S), is_own=True) as pool,
        asyncio.TaskGroup() as group,
    ):
        asked = [
            group.create_task(pool.recognise(bicycle(), language="en", speaker_id=number), name=f"speaker-{number}")
            for number in range(SPEAKERS)
        ]
    assert ["bicycle" in task.result().text for task in asked] == [True] * SPEAKERS


def test_a_third_one_waits_until_parts_are_smaller(machine: Machine) -> None:
    """No third half of a GPU is there: the two go on, and the third starts when each reserves a third."""
    with machine.running("cluster", "scale", "3"):
        until_told(machine, "Recognisers that hear: 2, and 1 more start")
    assert "Each reserves 0.25 CPUs and 0.33 GPUs." in machine.run("cluster", "scale", "3", "--gpus", "0.33")
    assert "Recognisers that hear: 3 (running)." in machine.run("cluster", "status")


def until_told(machine: Machine, words: str) -> None:
    """Wait until `roomtone cluster status` says these words."""
    given_up_at = time.monotonic() + PATIENCE_S
    while words not in (told := machine.run("cluster", "status")):
        assert time.monotonic() < given_up_at, told
