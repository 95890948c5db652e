"""Tunes the process: few pools of free memory from its start; short thread switches and garbage collections once all
models are loaded, and free memory given back from then on; and as many open files as the connections of many rooms are.

A voice packet is due every 20 ms, and its thread shares the interpreter with everything else in this process. All of
this is process-wide, so the bot does it once.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bot.clock import Clock

# How long a thread may run while another one waits for the interpreter. Python's default of 5 ms is a quarter of a
# frame, and ten rooms would wait for it one after the other. A switch costs microseconds, and only if a thread waits.
SWITCH_INTERVAL_S = 0.0005
# Arenas of glibc's malloc: pools of memory, of which each thread uses one. By default there are eight for each core,
# and what a thread frees stays in its own. After twelve minutes a room's threads had 453 MB in 16 arenas, and 393 MB in
# two, for the same CPU time (one run each, on a busy machine of two cores). One arena would do too, but all threads
# would wait for it. With mappings of their own for blocks of 4 MB and more (`M_MMAP_THRESHOLD`) a room took 603 MB
# instead of 632, but a recognition 3 to 5 % more CPU time: it takes and gives back the same pages again and again.
ARENAS = 2
_M_ARENA_MAX = -8
# Recognising a long utterance needs tens of megabytes for a second, and malloc would keep them for the next one,
# between what is in use. Giving them back takes 11 ms, and the next recognition no more time than before.
RELEASE_EVERY_S = 60.0
# With these the operator chooses (mallopt(3)).
_OPERATORS = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")


@contextmanager
def low_latency_interpreter() -> Iterator[None]:
    """Tune the interpreter, and restore it at exit. Enter it after all long-lived objects exist."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    # Libraries and models are some hundred thousand objects. Freezing them spares every later collection from scanning
    # them, which would stop all threads for 50 ms or more.
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before_s)


def limit_arenas() -> None:
    """Let malloc have few arenas. Call it before there are threads: those that exist keep theirs.

    Does nothing with a C library other than glibc, or if the operator has chosen in the environment.
    """
    if not any(name in os.environ for name in _OPERATORS):
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)


async def release_free_memory(clock: Clock) -> None:
    """Give what malloc holds free back to the system, at once (loading models leaves tens of megabytes) and every
    minute. Never returns.
    """
    while True:
        await asyncio.to_thread(_release_free_memory)
        await clock.sleep(RELEASE_EVERY_S)


def _release_free_memory() -> None:
    """Blocks for 10 ms, after loading the models for 30 to 70.

    Does nothing with a C library other than glibc, which has no `malloc_trim`.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
