"""Tunes the Python interpreter so that voice packets leave on time: short thread switches, short garbage collections.

A voice packet is due every 20 ms, and its thread shares the interpreter with everything else in this process. Both
settings are process-wide, so the bot makes them once, after all models are loaded.
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
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
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before_s)
