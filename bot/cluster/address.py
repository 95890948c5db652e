"""How a command connects to Ray, and how a bot reaches the pool.

Ray reports what it is used for to its makers unless it is told not to; here it never does. Its processes write their
logs below Ray's temporary folder; what people say is never logged (`replica`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from bot.errors import SetupError
from bot.network_address import NetworkAddress
from bot.private_files import open_private
from voice.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, MutableMapping
    from pathlib import Path

# The cluster that this machine is a part of.
HERE = "auto"
# Every node serves the pool here, for the bots that run on it.
POOL_IP = "127.0.0.1"
POOL_PORT = 8571
# Seconds the pool may take for one utterance; then the bot's own recogniser hears it. A recogniser is added when speech
# waits for a third of a second, so a pool that takes this long is away and not busy.
POOL_TIMEOUT_S = 4.0
# What Ray says while a command connects.
COMMAND_OUTPUT_FILE = "command.log"
TOKEN_FILE = "token"  # noqa: S105 - the name of a file

# The cluster's processes, apps and actors of Roomtone have this name in Ray.
NAMESPACE = "roomtone"
# Seconds until the cluster must have answered. A head on a busy machine takes ten.
CONNECT_TIMEOUT_S = 60.0
# Seconds a call about the cluster may take.
CALL_TIMEOUT_S = 10.0
# By itself Ray puts the machine's address in the network, a public one for example, in the place of a loopback address,
# and listens on all of them. With this it leaves that as it is, and takes no other machine.
LOOPBACK_STAYS: Final[Mapping[str, str]] = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
NOT_INSTALLED = "Ray is not installed. In the checkout, run `make cluster`, or `uv tool install '.[cluster,piper]'`."

T = TypeVar("T")


class ClusterError(SetupError):
    """The cluster is not there or refused something: the operator must start or mend it."""


def quiet(environment: MutableMapping[str, str]) -> None:
    """Set Ray's own variables: no report to its makers, and no copy of its processes' output on our screen."""
    environment["RAY_USAGE_STATS_ENABLED"] = "0"
    environment["RAY_DEDUP_LOGS"] = "0"
    environment["RAY_SERVE_LOG_TO_STDERR"] = "0"
    environment["RAY_BACKEND_LOG_LEVEL"] = "error"


async def told(call: Callable[[], T], silent: str) -> T:
    """Return what Ray answers to a call that blocks. Raises `ClusterError` with the sentence `silent` if it fails."""
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            return await asyncio.to_thread(call)
    except Exception as error:
        raise ClusterError(silent) from error


def installed() -> None:
    """Raise `ClusterError` if Ray is missing."""
    try:
        import ray.serve  # noqa: F401 - asks whether it is installed
    except ImportError as error:
        raise ClusterError(NOT_INSTALLED) from error


def pool_endpoint(address: str, folder: Path) -> Endpoint:
    """Return where a bot reaches the pool. `address`: `auto` for this machine's node, or HOST:PORT of the pool.

    `folder` has the cluster's token. Raises `ClusterError` if it has none, or if the address has another form.
    """
    try:
        where = NetworkAddress(POOL_IP, POOL_PORT) if address == HERE else NetworkAddress.parsed(address)
    except ValueError as error:
        raise ClusterError(
            f"{address!r} is not the address of a cluster. Give --cluster auto, or HOST:PORT, for example "
            "10.0.0.1:8571."
        ) from error
    return Endpoint(f"http://{where}/v1", "whisper", read_token(folder), POOL_TIMEOUT_S)


def read_token(folder: Path) -> str:
    """Return the cluster's token. Raises `ClusterError` if there is none."""
    file = folder / TOKEN_FILE
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is no text"
        raise ClusterError(
            f"The cluster's token cannot be read from {file}: {reason}. `roomtone cluster up` makes it on "
            "the first machine; copy it from there to the same place."
        ) from error
    if not token:
        raise ClusterError(f"{file} is empty. Copy the cluster's token from its first machine.")
    return token


def token_environment(folder: Path) -> dict[str, str]:
    """Return the variables with which a process proves that it belongs to the cluster."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str((folder / TOKEN_FILE).absolute())}


def node_folder(here: Path) -> Path:
    """Return the cluster's folder on the machine of the node that has started this process. `here`: the working
    folder, which is that of `cluster up`. Raises `ClusterError` on a node that was started in another way.
    """
    token = os.environ.get("RAY_AUTH_TOKEN_PATH")
    if not token:
        raise ClusterError(f"RAY_AUTH_TOKEN_PATH is not set: this node does not know where {TOKEN_FILE!r} is.")
    return (here / token).parent


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[None]:
    """Be a part of the cluster that this machine belongs to, during the block. `folder` has its token.

    For commands that end soon: Ray takes over the process's signals, and ends it when the cluster's head is lost.
    Raises `ClusterError`.
    """
    read_token(folder)
    quiet(os.environ)
    os.environ.update({**token_environment(folder), **LOOPBACK_STAYS})
    # Else a call that is still under way after the block would make Ray connect anew.
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"
    await asyncio.to_thread(installed)
    for name in ("ray", "ray.serve"):
        logging.getLogger(name).setLevel(logging.ERROR)
    import ray

    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            with _errors_into(folder / COMMAND_OUTPUT_FILE):
                await asyncio.to_thread(
                    ray.init,
                    address=HERE,
                    namespace=NAMESPACE,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    configure_logging=False,
                )
    except TimeoutError as error:
        raise ClusterError(_unreachable(f"no answer in {CONNECT_TIMEOUT_S:g} s")) from error
    # Ray raises ConnectionError, RuntimeError, ValueError and its own errors here, by version.
    except Exception as error:
        raise ClusterError(_unreachable(_first_line(error))) from error
    try:
        yield
    finally:
        await asyncio.to_thread(ray.shutdown)


@contextmanager
def _errors_into(path: Path) -> Iterator[None]:
    """Send this process's standard error into a file: Ray's C++ part writes there before it reads its settings."""
    sys.stderr.flush()
    kept = os.dup(sys.stderr.fileno())
    try:
        with open(path, "wb", opener=open_private) as file:
            os.dup2(file.fileno(), sys.stderr.fileno())
        yield
    finally:
        os.dup2(kept, sys.stderr.fileno())
        os.close(kept)


def _unreachable(why: str) -> str:
    return (
        f"This machine's cluster cannot be used ({why}). Is `roomtone cluster up` running here, and has every machine "
        "the same token? docs/cluster.md says how."
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:200].rstrip(".")
