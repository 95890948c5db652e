"""The tests of a cluster of three machines: one is drained and one killed while people speak.

`test_real_cluster` starts them in a network of their own; a plain test run does not collect this file.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.cluster.processes import running
from bot.cluster.address import pool_endpoint
from bot.cluster.state import APP
from tests.bot.cluster.machines import FIRST_IP, Machine, build_bridge, give_token
from tests.fakes.recogniser import FakeRecogniser
from tests.patience import PATIENCE_S
from tests.voice.recordings import bicycle
from voice.asr.fallback import FallbackRecogniser
from voice.asr.remote import RemoteRecogniser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

# The pool's time limit is for a room. A machine that runs tests is slower.
ANSWER_S = 60.0
OWN = "my own hears"
SPEAKERS = 4
# Enough for chance to give each of three recognisers some.
UTTERANCES = 30
# Run on a machine: recognise the sound in a file with that machine's pool, and print the text.
ASK = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from bot.cluster.address import pool_endpoint
from voice.asr.remote import RemoteRecogniser
async def ask():
    endpoint = replace(pool_endpoint("auto", Path("data/cluster")), timeout_s=float(sys.argv[2]))
    async with RemoteRecogniser(endpoint, is_own=True) as pool:
        print((await pool.recognise(np.load(sys.argv[1]), language="en")).text)
asyncio.run(ask())
"""


@dataclass
class Cluster:
    """The three machines. The test runs on the first."""

    first: Machine
    drained: Machine
    killed: Machine

    def status(self) -> list[str]:
        """Return what `roomtone cluster status` prints."""
        return self.first.run("cluster", "status").splitlines()


@dataclass
class Answers:
    """The texts that came for each utterance, by its number, and what the bot heard by itself."""

    own: FakeRecogniser = field(default_factory=lambda: FakeRecogniser(otherwise=OWN))
    texts: dict[int, list[str]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, whisper_model_dir: Path) -> Iterator[Cluster]:
    """Yield three machines, the first one with a recogniser, as an operator sets them up."""
    build_bridge()
    machines = []
    for number in (1, 2, 3):
        folder = tmp_path_factory.mktemp(f"machine{number}")
        (folder / "roomtone.toml").write_text(
            f'[asr]\nmodel = "{whisper_model_dir.absolute()}"\ndevice = "cpu"\n', encoding="utf-8"
        )
        machines.append(Machine(number, folder))
    first, drained, killed = machines
    with ExitStack() as stack:
        for machine in machines:
            stack.callback(machine.kill)
        stack.enter_context(first.up("--cpus", "0.5"))
        for machine in (drained, killed):
            give_token(machine, of=first)
            stack.enter_context(machine.up("--join", f"{FIRST_IP}:6379"))
        yield Cluster(first, drained, killed)


@asynccontextmanager
async def people_speak(cluster: Cluster) -> AsyncIterator[Answers]:
    """Let people speak during the block, and each of them once more after it."""
    answers, numbers, over = Answers(), itertools.count(), asyncio.Event()
    endpoint = pool_endpoint("auto", cluster.first.folder / "data" / "cluster")
    endpoint = replace(endpoint, timeout_s=ANSWER_S)
    async with RemoteRecogniser(endpoint, is_own=True, has_fallback=True) as pool:
        both = FallbackRecogniser(pool, answers.own)

        async def speak(speaker_id: int) -> None:
            while True:
                last, number = over.is_set(), next(numbers)
                told = answers.texts.setdefault(number, [])
                told.append((await both.recognise(bicycle(), language="en", speaker_id=speaker_id)).text)
                if last:
                    return

        async with asyncio.TaskGroup() as group:
            for speaker_id in range(SPEAKERS):
                group.create_task(speak(speaker_id), name=f"speaker-{speaker_id}")
            try:
                yield answers
            finally:
                over.set()


async def until(holds: Callable[[], bool]) -> None:
    """Wait for other machines, which tell nobody."""
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110 - nothing here could set an event
            await asyncio.sleep(0.5)


def test_a_bot_asks_the_machine_that_it_runs_on(cluster: Cluster, tmp_path: Path) -> None:
    """A machine without a recogniser answers at its own loopback address, with the token that was copied there."""
    import numpy as np

    cluster.first.run("cluster", "scale", "1")
    sound = tmp_path / "sound.npy"
    np.save(sound, bicycle())
    for machine in (cluster.drained, cluster.killed):
        assert "bicycle" in machine.python(ASK, str(sound), str(ANSWER_S))


def test_every_machine_is_told(cluster: Cluster) -> None:
    """The operator reads three machines, the first one first, and that as many recognisers hear as were asked for."""
    assert "do not reach" not in cluster.first.run("cluster", "scale", "3")
    told = cluster.status()
    assert [line.split(":")[0] for line in told[:3]] == [FIRST_IP, cluster.drained.ip, cluster.killed.ip]
    assert told[3] == "Recognisers that hear: 3 (running)."


def work_of_recognisers() -> list[float]:
    """Return the CPU seconds of each recogniser: the first machine sees the processes of all."""
    return [each.cpu_s for each in running() if f"ServeReplica:{APP}" in each.command]


@pytest.mark.asyncio
async def test_every_recogniser_works(cluster: Cluster) -> None:
    """A bot's speech goes to all of them, not first of all to the recogniser beside it."""
    before = work_of_recognisers()
    assert len(before) == 3

    def all_work() -> bool:
        worked = [now - then for now, then in zip(work_of_recognisers(), before, strict=True)]
        # One that gets nothing still tells Ray Serve each second that it is well.
        return min(worked) > max(worked) / 4

    async with people_speak(cluster) as answers:
        # Chance may pass one over for a while.
        await until(lambda: len(answers.texts) > UTTERANCES and all_work())
    assert answers.own.heard == []


@pytest.mark.asyncio
async def test_a_drained_machine_costs_nobody_a_word(cluster: Cluster) -> None:
    """While people speak, a machine leaves: the pool answers every utterance once, and as many recognisers hear."""
    async with people_speak(cluster) as answers:
        told = await asyncio.to_thread(cluster.first.run, "cluster", "drain", cluster.drained.ip)
    assert "no recognisers any more" in told
    assert answers.own.heard == []
    assert len(answers.texts) > SPEAKERS
    assert [len(texts) for texts in answers.texts.values()] == [1] * len(answers.texts)
    assert all("bicycle" in texts[0] for texts in answers.texts.values())
    status = cluster.status()
    assert any(line.startswith(f"{cluster.drained.ip}: ") and "CPUs" not in line for line in status), status
    assert "Recognisers that hear: 3 (running)." in status


def test_the_first_machine_does_not_leave(cluster: Cluster) -> None:
    """The cluster would end with it, so it says what to do instead."""
    assert "cluster down" in cluster.first.refusal("cluster", "drain", FIRST_IP)


@pytest.mark.asyncio
async def test_a_killed_machine_costs_nobody_a_word(cluster: Cluster) -> None:
    """While people speak, a machine's processes all end at once: every utterance is answered once, by the pool or by
    the bot itself. The machine is told as lost, and the pool hears with the recognisers of the first.
    """
    lost = f"{cluster.killed.ip}: lost"
    async with people_speak(cluster) as answers:
        cluster.killed.kill()
        await until(lambda: lost in cluster.status())
        # Ray Serve counts those of a machine that is gone until it notices, and starts others then.
        await until(lambda: len(work_of_recognisers()) == 3)
        await until(lambda: "Recognisers that hear: 3 (running)." in cluster.status())
    assert len(answers.texts) > SPEAKERS
    assert [len(texts) for texts in answers.texts.values()] == [1] * len(answers.texts)
    assert all("bicycle" in texts[0] or texts == [OWN] for texts in answers.texts.values())
    async with people_speak(cluster) as afterwards:
        pass
    assert afterwards.own.heard == []
    assert all("bicycle" in texts[0] for texts in afterwards.texts.values())
