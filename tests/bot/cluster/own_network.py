"""The tests of a real cluster. They run in a network of their own: Ray listens on every address that it finds.

`test_real_cluster` starts them; a plain test run does not collect this file.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
import pytest_asyncio

from bot.cluster.address import pool_endpoint
from bot.cluster.node import PORT
from bot.cluster.ray_process import ray_process
from bot.cluster.running_process import running_process
from bot.cluster.state import APP, DEPLOYMENT
from tests.bot.cluster.machines import ROOMTONE, environment
from tests.fakes.recogniser import FakeRecogniser
from tests.patience import PATIENCE_S
from tests.voice.asr.recogniser_contract import RecogniserContract
from tests.voice.recordings import bicycle
from voice.asr.fallback import FallbackRecogniser
from voice.asr.remote import RemoteRecogniser
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from voice.asr.port import Recogniser
    from voice.endpoint import Endpoint

# The pool's time limit is for a room. A machine that runs tests is slower.
ANSWER_S = 60.0
# Each speaks again as soon as the text is there, so all but one wait, each for the others.
SPEAKERS = 6


# The address of this machine in a network that leads anywhere, as most machines have one.
OUTSIDE = "10.0.0.7"


def roomtone(folder: Path, *words: str) -> str:
    """Run a command in `folder` and return what it printed."""
    return subprocess.run(
        [*ROOMTONE, *words], cwd=folder, env=environment(), capture_output=True, text=True, check=True
    ).stdout


@contextmanager
def running_up(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `roomtone cluster up`, yield when it runs, and end it."""
    output = folder / "up.txt"
    with output.open("wb") as file:
        up = subprocess.Popen(
            [*ROOMTONE, "cluster", "up", "--cpus", "0.5"], cwd=folder, env=environment(), stdout=file, stderr=file
        )
    try:
        while "Ctrl-C ends it." not in output.read_text():
            assert up.poll() is None, output.read_text()
            time.sleep(0.2)
        yield up
    finally:
        up.send_signal(signal.SIGTERM)
        up.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, whisper_model_dir: Path) -> Iterator[Path]:
    """Yield the folder of a cluster of one machine, which `roomtone cluster up` keeps."""
    for words in (
        ("addr", "add", f"{OUTSIDE}/24", "dev", "lo"),
        ("route", "add", "default", "dev", "lo", "src", OUTSIDE),
    ):
        subprocess.run(["ip", *words], check=True)
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "roomtone.toml").write_text(
        f'[asr]\nmodel = "{whisper_model_dir.absolute()}"\ndevice = "cpu"\n', encoding="utf-8"
    )
    with running_up(folder):
        yield folder


def endpoint_of(cluster: Path) -> Endpoint:
    """Return where a bot on this machine reaches the pool."""
    return replace(pool_endpoint("auto", cluster / "data" / "cluster"), timeout_s=ANSWER_S)


class TestPool(RecogniserContract):
    """Runs the contract with a real recogniser in a real cluster."""

    @pytest_asyncio.fixture
    async def recogniser(self, cluster: Path) -> AsyncIterator[Recogniser]:
        """Yield what a bot asks."""
        async with RemoteRecogniser(endpoint_of(cluster), is_own=True) as recogniser:
            yield recogniser


@pytest.mark.asyncio
async def test_the_pool_tells_where_a_sentence_ends(cluster: Path) -> None:
    """Rooms wait for the end of an utterance as they do with a recogniser of their own."""
    async with RemoteRecogniser(endpoint_of(cluster), is_own=True) as pool:
        heard = await pool.recognise(bicycle(), language="en")
    assert heard.sentence_end_probability is not None
    assert heard.sentence_end_probability > 0.5


@pytest.mark.asyncio
async def test_without_the_token_nobody_is_heard(cluster: Path) -> None:
    """A request with another token is refused, and the sentence says so."""
    async with RemoteRecogniser(replace(endpoint_of(cluster), api_key="guessed"), is_own=True) as stranger:
        with pytest.raises(RecogniserError, match="key"):
            await stranger.recognise(bicycle(), language="en")


@pytest.mark.asyncio
async def test_without_the_token_ray_hands_no_call_to_a_recogniser(cluster: Path) -> None:
    """A recogniser's port for Ray's own calls, which run code, refuses a call without the cluster's token."""
    token = endpoint_of(cluster).api_key
    with_token = {port: await call_of_ray(port, (("authorization", f"Bearer {token}"),)) for port in listening_ports()}
    # The call has nothing in it, so a recogniser that takes it fails.
    taken = [port for port, code in with_token.items() if code is grpc.StatusCode.UNKNOWN]
    assert taken
    assert {await call_of_ray(port, ()) for port in taken} == {grpc.StatusCode.UNAUTHENTICATED}


async def call_of_ray(port: int, metadata: tuple[tuple[str, str], ...]) -> grpc.StatusCode | None:
    """Call a recogniser as Ray Serve does, and return what it answers."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/ray.serve.ASGIService/HandleRequest")(b"", metadata=metadata, timeout=PATIENCE_S)
        code: grpc.StatusCode | None = await call.code()
        return code


def listening_ports() -> set[int]:
    """Return the TCP ports of this network at which something listens."""
    tables = [Path("/proc/net", name).read_text(encoding="ascii").splitlines()[1:] for name in ("tcp", "tcp6")]
    listening = "0A"
    rows = [line.split() for table in tables for line in table]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == listening}


@pytest.mark.asyncio
async def test_from_outside_only_recognisers_of_a_machine_that_is_alone_are_reached(cluster: Path) -> None:
    """Ray would take the machine's address in the network, and listen on all of them. Recognisers do, and ask for the
    token.
    """
    reached = []
    for port in listening_ports():
        with suppress(OSError), socket.create_connection((OUTSIDE, port), PATIENCE_S):
            reached.append(port)
    assert PORT not in reached
    assert len(reached) <= 2, "one recogniser, and what lets bots reach it"
    assert {await call_of_ray(port, ()) for port in reached} <= {grpc.StatusCode.UNAUTHENTICATED}


def test_the_status_tells_machines_and_recognisers(cluster: Path) -> None:
    """The operator reads each machine with what Ray may give away there, and how many recognisers hear."""
    told = roomtone(cluster, "cluster", "status")
    assert told.startswith("127.0.0.1: ")
    assert "Recognisers that hear: 1 (running)." in told


def test_a_second_one_on_this_machine_is_refused(cluster: Path) -> None:
    """The second `up` ends with a sentence, and the first goes on."""
    second = subprocess.run(
        [*ROOMTONE, "cluster", "up"], cwd=cluster, env=environment(), capture_output=True, text=True, check=False
    )
    assert second.returncode == 1
    assert "in a cluster already" in second.stderr


def test_scale_keeps_what_recognisers_reserve(cluster: Path) -> None:
    """The options of `up` stay, as Ray tells them, where `scale` does not say another; and as long as they do, so do
    the recognisers that hear.
    """
    before = set(replicas())
    assert "keeps 1 to 2 recognisers. Each reserves 0.5 CPUs and" in roomtone(cluster, "cluster", "scale", "1-2")
    assert "keeps 2 recognisers." in roomtone(cluster, "cluster", "scale", "2")
    assert before < set(replicas())
    assert "Each reserves 0.25 CPUs and" in roomtone(cluster, "cluster", "scale", "1", "--cpus", "0.25", "--batch", "2")
    assert "keeps 1 recogniser. Each reserves 0.25 CPUs and" in roomtone(cluster, "cluster", "scale", "1")


@pytest.mark.asyncio
async def test_the_pool_grows_while_speech_waits(cluster: Path) -> None:
    """More people speak than one recogniser keeps up with: Ray asks the policy of `scaling`, and starts a second one.
    Nobody's words are lost meanwhile.
    """
    roomtone(cluster, "cluster", "scale", "1-2")
    texts: list[str] = []
    over = asyncio.Event()
    async with RemoteRecogniser(endpoint_of(cluster), is_own=True) as pool:

        async def speak(speaker_id: int) -> None:
            while not over.is_set():
                texts.append((await pool.recognise(bicycle(), language="en", speaker_id=speaker_id)).text)

        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            for number in range(SPEAKERS):
                group.create_task(speak(number), name=f"speaker-{number}")
            while "that hear: 2 (running)." not in await asyncio.to_thread(roomtone, cluster, "cluster", "status"):
                pass
            over.set()
    assert len(texts) > SPEAKERS
    assert all(texts)
    roomtone(cluster, "cluster", "scale", "1")


async def until(holds: Callable[[], bool]) -> None:
    """Wait for other processes, which tell nobody."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - nothing here could set an event
            await asyncio.sleep(0.2)


def replicas() -> list[int]:
    """Return the processes of the recognisers."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if f"ServeReplica:{APP}:{DEPLOYMENT}" in line]


@pytest.mark.asyncio
async def test_a_killed_recogniser_costs_no_word_and_comes_back(cluster: Path) -> None:
    """While the recogniser's process is gone the bot's own hears; then Ray has put another in its place."""
    own = FakeRecogniser(otherwise="my own hears")
    async with RemoteRecogniser(endpoint_of(cluster), is_own=True) as pool:
        both = FallbackRecogniser(pool, own)
        # One that has just been replaced may still be ending.
        await until(lambda: len(replicas()) == 1)
        (victim,) = replicas()
        os.kill(victim, signal.SIGKILL)
        assert (await both.recognise(bicycle(), language="en")).text
        await until(lambda: bool(now := replicas()) and now != [victim])
        # The pool lets a request wait for a recogniser, but not as long as a busy machine may load a model.
        await until(lambda: "Recognisers that hear: 1 (running)." in roomtone(cluster, "cluster", "status"))
        assert "bicycle" in (await pool.recognise(bicycle(), language="en")).text


@pytest.mark.asyncio
async def test_after_down_the_own_recogniser_hears_and_no_process_is_left(cluster: Path) -> None:
    """`roomtone cluster down` ends everything that `up` started; a bot hears by itself and knows why."""
    assert "Asked" in roomtone(cluster, "cluster", "down")
    await until(lambda: not ray_processes())
    assert "Ending Ray" in (cluster / "up.txt").read_text()
    own = FakeRecogniser(otherwise="my own hears")
    async with RemoteRecogniser(endpoint_of(cluster), is_own=True) as pool:
        both = FallbackRecogniser(pool, own)
        heard = [(await both.recognise(bicycle(), language="en")).text for _ in range(3)]
        assert heard == ["my own hears"] * 3
        assert both.outage is not None
    await until(lambda: running_process(cluster / "data" / "cluster") is None)
    assert "in no cluster" in roomtone(cluster, "cluster", "down")


@pytest.mark.asyncio
async def test_a_killed_up_leaves_nothing_after_the_next_one(cluster: Path) -> None:
    """Ray runs on, in a session of its own, until the next `up` or `down`, which says so."""
    folder = cluster / "data" / "cluster"
    with running_up(cluster) as up:
        up.kill()
        up.wait()
        left = ray_process(folder)
        assert left is not None
        with running_up(cluster) as second:
            assert "has left Ray running" in (cluster / "up.txt").read_text()
            assert ray_process(folder) not in (None, left)
            second.kill()
            second.wait()
        assert ray_processes()
        assert "has left Ray running" in roomtone(cluster, "cluster", "down")
        await until(lambda: not ray_processes())


def ray_processes() -> list[str]:
    """Return the command lines of everything that belongs to Ray."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if "/ray/" in line or line.startswith("ray::")]
