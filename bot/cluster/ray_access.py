"""How Ray is reached: what its own commands read (the token, the environment of `ray start`, the file of
`serve deploy`), and the connection of a command of ours to the Ray of this machine.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import SetupError
from bot.private_files import make_private_folder, replace_private_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Our actors and applications have this namespace in Ray.
NAMESPACE = "roomtone"
NOT_INSTALLED = "Ray is not installed. In the checkout, run `make cluster`, or `uv tool install '.[cluster,piper]'`."
TOKEN_FILE = "token"  # noqa: S105 - the name of a file
ENVIRONMENT_FILE = "ray.env"
SERVE_FILE = "serve.yaml"
_TOKEN_BYTES = 32


class ClusterError(SetupError):
    """The cluster is not there or refused something: the operator must start or mend it."""


def ray_environment(folder: Path) -> dict[str, str]:
    """Return the variables with which Ray's processes and our commands run. `folder`: has the token."""
    return {
        # Nobody gets in without the token, and nothing is reported to Ray's makers.
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str((folder / TOKEN_FILE).absolute()),
        "RAY_USAGE_STATS_ENABLED": "0",
        # A machine that is lost is known after 5 s; with Ray's defaults it takes 15.
        "RAY_health_check_period_ms": "500",
        "RAY_health_check_timeout_ms": "1000",
        "RAY_health_check_failure_threshold": "3",
        # A node answers late while its own parts start.
        "RAY_health_check_initial_delay_ms": "30000",
        # Ray gives its workers a low priority, which the bots would inherit.
        "RAY_worker_niceness": "0",
        # numpy's threads would spin beside the speech model's (bot.__main__).
        "OMP_NUM_THREADS": "1",
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16",
        "RAY_BACKEND_LOG_LEVEL": "error",
    }


def write_ray_files(folder: Path, serve_config: Mapping[str, object]) -> None:
    """Write all three, and keep a token that is there: other machines have a copy. Raises `ClusterError`."""
    try:
        make_private_folder(folder)
        if not (folder / TOKEN_FILE).exists():
            replace_private_text(folder / TOKEN_FILE, secrets.token_hex(_TOKEN_BYTES), durable=True)
        lines = (f"{name}={shlex.quote(value)}\n" for name, value in ray_environment(folder).items())
        replace_private_text(folder / ENVIRONMENT_FILE, "".join(lines))
        # JSON is YAML too.
        replace_private_text(folder / SERVE_FILE, json.dumps(serve_config, indent=2) + "\n")
    except OSError as error:
        raise ClusterError(f"{folder} cannot be written: {error.strerror}. Check storage.data_dir.") from error


def start_commands(folder: Path, ip: str) -> list[str]:
    """Return what the operator runs on the first machine and on each other one."""
    source = f"set -a; . {folder / ENVIRONMENT_FILE}; set +a"
    ray = shlex.quote(str(Path(sys.executable).parent / "ray"))
    common = f"--node-ip-address {ip} --disable-usage-stats"
    return [
        f"{source}; {ray} start --head --include-dashboard false {common}",
        f"{source}; {ray} start --address {ip}:6379 --node-ip-address ITS-ADDRESS --disable-usage-stats",
    ]


@contextmanager
def connected(folder: Path) -> Iterator[None]:
    """Connect Ray to the cluster that this machine belongs to. `folder`: has the token.

    For commands that end soon: Ray ends a process that has lost the cluster's head. Raises `ClusterError`.
    """
    os.environ.update(ray_environment(folder))
    try:
        import ray
    except ImportError as error:
        raise ClusterError(NOT_INSTALLED) from error
    for name in ("ray", "ray.serve"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        ray.init(address="auto", namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
    # Ray raises ConnectionError, RuntimeError, ValueError and its own errors here, by version.
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ClusterError(f"Ray does not answer on this machine: {lines[0][:200].rstrip('.')}.") from error
    try:
        yield
    finally:
        ray.shutdown()
