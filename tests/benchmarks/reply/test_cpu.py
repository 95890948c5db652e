"""The processor time of an answer is told by the threads of the models, and nothing of it is lost."""

from __future__ import annotations

import sys
import time

import pytest

from benchmarks.reply.cpu import cpu_by_stage, cpu_since
from voice.daemon_thread import DaemonThread


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the processor time of a thread")
async def test_the_work_of_a_models_thread_is_its_stages() -> None:
    """What a thread of the turn model computes is told apart from the rest."""
    thread = DaemonThread("turn-model")

    def compute() -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < 0.1:
            pass

    before = cpu_by_stage()
    await thread.run(compute, within_s=60.0)
    used = cpu_since(before)
    await thread.stop(within_s=60.0)
    assert used["turn_models"] >= 0.09
    assert used["recognition"] == used["synthesis"] == 0.0
