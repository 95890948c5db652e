"""Python itself, set so that voices keep their time: other threads' turns are short, and no collection is long.

A voice that is due every 20 ms shares the interpreter with everything else this process does. Both settings hold for
the whole process, so whoever starts the bot makes them, once all models are loaded.
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# How long a thread may go on once another one wants the interpreter. Python's own 5 ms is a quarter of a frame, and
# ten rooms would wait for it one after the other. Changing over costs microseconds, and only where somebody waits.
SWITCH_INTERVAL_S = 0.0005


@contextmanager
def timely_interpreter() -> Iterator[None]:
    """Set the interpreter up for voices, and back afterwards. Enter it when what will stay has been made."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    # Libraries and models are some hundred thousand objects, which no later collection need go through again: it
    # would hold every thread for 50 ms and more.
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before_s)
