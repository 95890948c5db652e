"""Ray's processes on this machine, from `roomtone cluster up` until it ends.

`running_node` owns them: they end with its block. Where its process is killed, they go on, and `ray_process` ends them.
Every node of a cluster has the same token, in a file that only its user can read; without it nobody gets in. Ray's own
report to its makers is off.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from typing import IO, TYPE_CHECKING, Final

from bot.cluster.address import (
    LOOPBACK_STAYS,
    NOT_INSTALLED,
    TOKEN_FILE,
    ClusterError,
    quiet,
    read_token,
    token_environment,
)
from bot.cluster.joining import HEAD_WITHIN_S, check_token_taken, reach_head
from bot.cluster.ray_process import STOP_TIMEOUT_S, ray_folder
from bot.cluster.running_process import PROCESS_FILE, for_a_child
from bot.private_files import make_private_folder, open_private, replace_private_text, write_private_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

PORT = 6379
TOKEN_BYTES = 32
OUTPUT_FILE = "ray.log"
# Seconds until Ray says that the node runs. On a machine that is busy with other things it has taken 30.
START_TIMEOUT_S = 120.0
# Seconds Ray may spend on ending what runs on the node. `STOP_TIMEOUT_S` has as many for its own processes.
DRAIN_S = 10
ATTEMPTS = 3
# Written by `ray start --block` once all processes of the node run.
_STARTED = "Ray runtime started."
_POLL_S = 0.1
# Shared memory for sound on its way, and for results; half a minute of speech has one megabyte.
OBJECT_STORE_BYTES = 200_000_000
# What Ray's processes read; deploy/kuberay.yaml has the same.
RAY_ENVIRONMENT: Final[Mapping[str, str]] = {
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": str(DRAIN_S),
    # Else a machine's own recogniser gets all requests made there until its queue is full, while those of others idle.
    "RAY_SERVE_PROXY_PREFER_LOCAL_NODE_ROUTING": "0",
    # Ray gives its own processes a low priority, which recognisers would inherit; of these the model alone has a lower
    # one (`voice.asr.worker`).
    "RAY_worker_niceness": "0",
    # A request is not handed from thread to thread within a process, 2 ms less: no code of a recogniser blocks.
    "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",
    "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "0",
    # Requests are read in Serve's own process for HTTP, and then handed over.
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "bot.cluster.front:middlewares",
    # An utterance goes straight to the recogniser's own gRPC server, and not as a task of Ray's: 3 ms less. Ray checks
    # the cluster's token there too.
    "RAY_SERVE_USE_GRPC_BY_DEFAULT": "1",
    # gRPC asks for this one before `https_proxy` and `http_proxy`, and takes none if it is empty. Ray itself uses no
    # proxy between its machines, but Serve would send utterances through one, also those for this machine.
    "grpc_proxy": "",
}


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """`ip`: the address at which the other machines reach this one. `join`: HOST:PORT of the cluster's head; empty
    if this machine is the head. `folder`: token and Ray's output. `cpus`: what Ray may give away here; None: all.
    """

    folder: Path
    ip: str = "127.0.0.1"
    join: str = ""
    port: int = PORT
    cpus: int | None = None

    @property
    def is_alone(self) -> bool:
        """Return whether this is the first machine and no other one reaches it."""
        return not self.join and ip_address(self.ip).is_loopback

    @property
    def address(self) -> str:
        """Return HOST:PORT of the cluster's head."""
        return self.join or f"{self.ip}:{self.port}"


def make_token(folder: Path) -> None:
    """Make the cluster's token if there is none. Raises `ClusterError`."""
    file = folder / TOKEN_FILE
    try:
        make_private_folder(folder)
        if not file.exists():
            # What a full disk or a power failure leaves of a token would be taken for one at the next start.
            replace_private_text(file, secrets.token_hex(TOKEN_BYTES), durable=True)
    except OSError as error:
        raise ClusterError(f"{file} cannot be written: {error.strerror}. Check storage.data_dir.") from error


def start_command(settings: NodeSettings) -> list[str]:
    """Return the command line that runs this node in the foreground."""
    head = ["--head", "--port", str(settings.port), "--include-dashboard", "false"]
    where = ["--address", settings.join] if settings.join else head
    cpus = [] if settings.cpus is None else ["--num-cpus", str(settings.cpus)]
    return [
        *(sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *where),
        *("--node-ip-address", settings.ip, *cpus, "--object-store-memory", str(OBJECT_STORE_BYTES)),
        *("--disable-usage-stats", "--log-style", "record", "--log-color", "false"),
    ]


def ray_environment(settings: NodeSettings) -> dict[str, str]:
    """Return the variables with which Ray's processes run on this node."""
    alone = LOOPBACK_STAYS if settings.is_alone else {}
    return {**token_environment(settings.folder), **RAY_ENVIRONMENT, **alone}


@asynccontextmanager
async def running_node(settings: NodeSettings) -> AsyncIterator[asyncio.Task[int]]:
    """Run Ray on this machine during the block. Yields a task that ends, with the exit status, if Ray does.

    Raises `ClusterError` if Ray is not installed or does not start, if there is no token, or if nobody answers where
    this machine joins.
    """
    if find_spec("ray") is None:
        raise ClusterError(NOT_INSTALLED)
    if not settings.join:
        make_token(settings.folder)
    read_token(settings.folder)
    if settings.join:
        await reach_head(settings.join, HEAD_WITHIN_S)
    output = await asyncio.to_thread(open, settings.folder / OUTPUT_FILE, "w+b", opener=open_private)
    with output:
        process, ended = await _started(settings, output)
        try:
            yield ended
        finally:
            await _stop(process, ended)


async def _started(settings: NodeSettings, output: IO[bytes]) -> tuple[asyncio.subprocess.Process, asyncio.Task[int]]:
    """Start Ray, and once more if it gives up: it allows its own parts 30 s, which a busy machine may exceed."""
    problem = ""
    for _ in range(ATTEMPTS):
        process = await _start(settings, output)
        ended = asyncio.create_task(process.wait(), name="ray-node")
        try:
            if await _runs(ended, output):
                return process, ended
            check_token_taken(_text(output), settings.folder)
            problem = _last_words(output)
        except BaseException:
            await _stop(process, ended)
            raise
    raise ClusterError(f"Ray did not start. {problem}")


async def _start(settings: NodeSettings, output: IO[bytes]) -> asyncio.subprocess.Process:
    environment = {**os.environ, **ray_environment(settings)}
    quiet(environment)
    # A session of its own: Ctrl-C reaches this process alone, which ends Ray after the recognisers are done.
    folder = ray_folder(settings.folder)
    with for_a_child(folder) as lock:
        process = await asyncio.create_subprocess_exec(
            *start_command(settings),
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lock,),
        )
        try:
            write_private_text(folder / PROCESS_FILE, str(process.pid))
        except OSError as error:
            process.kill()
            await process.wait()
            raise ClusterError(f"{folder} cannot be written: {error.strerror}. Check storage.data_dir.") from error
    return process


async def _runs(ended: asyncio.Task[int], output: IO[bytes]) -> bool:
    """Wait until the node runs; return False if Ray has ended. Raises `ClusterError` after `START_TIMEOUT_S`."""
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            while not ended.done():
                if _STARTED in _text(output):
                    return True
                await asyncio.sleep(_POLL_S)
    except TimeoutError as error:
        raise ClusterError(f"Ray did not start within {START_TIMEOUT_S:g} s. {_last_words(output)}") from error
    return False


async def _stop(process: asyncio.subprocess.Process, ended: asyncio.Task[int]) -> None:
    if not ended.done():
        process.send_signal(signal.SIGTERM)
        await asyncio.wait({ended}, timeout=STOP_TIMEOUT_S)
    if not ended.done():
        os.killpg(process.pid, signal.SIGKILL)
    await ended


def _text(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read().decode("utf-8", "replace")


def _last_words(output: IO[bytes]) -> str:
    lines = [line.strip() for line in _text(output).splitlines() if line.strip()]
    return f"It said: {lines[-1][:300]}" if lines else "It said nothing."
