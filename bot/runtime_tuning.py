"""Tunes the process once all models are loaded: short thread switches and garbage collections, no memory of loading.

A voice packet is due every 20 ms, and its thread shares the interpreter with everything else in this process. All of
this is process-wide, so the bot does it once.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# How long a thread may run while another one waits for the interpreter. Python's default of 5 ms is a quarter of a
# frame, and ten rooms would wait for it one after the other. A switch costs microseconds, and only if a thread waits.
SWITCH_INTERVAL_S = 0.0005


@contextmanager
def low_latency_interpreter() -> Iterator[None]:
    """Tune the interpreter, and restore it at exit. Enter it after all long-lived objects exist."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    # Libraries and models are some hundred thousand objects. Freezing them spares every later collection from scanning
    # them, which would stop all threads for 50 ms or more.
    gc.collect()
    gc.freeze()
    release_free_memory()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before_s)


def release_free_memory() -> None:
    """Give what malloc holds free back to the system: after loading the models, tens of megabytes. Blocks for 30-70 ms.

    Does nothing with a C library other than glibc, which has no `malloc_trim`.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
