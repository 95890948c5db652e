"""Connects a command to the Ray that runs on this machine."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bot.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Our actors and applications have this namespace in Ray.
NAMESPACE = "roomtone"
NOT_INSTALLED = "Ray is not installed. In the checkout, run `make cluster`, or `uv tool install '.[cluster,piper]'`."


class ClusterError(SetupError):
    """The cluster is not there or refused something: the operator must start or mend it."""


@contextmanager
def connected(environment: Mapping[str, str]) -> Iterator[Any]:
    """Yield Ray, connected to the cluster that this machine belongs to. `environment`: `ray_files.ray_environment`.

    For commands that end soon: Ray ends a process that has lost the cluster's head. Raises `ClusterError`.
    """
    os.environ.update(environment)
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
        yield ray
    finally:
        ray.shutdown()
