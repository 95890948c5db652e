"""How long a test waits for what has to come from a socket, a thread, another process or a browser."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

T = TypeVar("T")

# Nothing takes this long, not even on a busy machine. A test that hangs fails with what it waited for, before pytest's
# own limit (pyproject.toml) ends it with a stack.
PATIENCE_S = 300.0
# How long the product waits where a test is not about that. A test can outwait it.
LENGTHENED_S = PATIENCE_S / 2


@contextmanager
def lengthened(limits: Iterable[tuple[str, str]]) -> Iterator[None]:
    """Let time limits of the product be `LENGTHENED_S` for the block. `limits`: the module and the constant of each;
    those of modules that are not imported are left out.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module, limit in limits:
            if module in sys.modules:
                patch.setattr(sys.modules[module], limit, LENGTHENED_S)
        yield


async def patiently(awaited: Awaitable[T]) -> T:
    """Wait for something that a socket, a thread or another process brings about, and return it."""
    async with asyncio.timeout(PATIENCE_S):
        return await awaited


async def settle(holds: Callable[[], object]) -> None:
    """Wait until `holds` returns something true. Sockets, other threads and other processes bring it about."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - they set no event
            await asyncio.sleep(0.002)
