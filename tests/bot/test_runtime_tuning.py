"""The settings of the interpreter and of malloc in the bot's process."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys

import pytest

from bot.runtime_tuning import ARENAS, SWITCH_INTERVAL_S, low_latency_interpreter


def test_turns_are_short_and_collections_too_while_it_lasts() -> None:
    """Inside the context, thread switches are short and existing objects are frozen. At its end, all is as before."""
    before_s = sys.getswitchinterval()
    with low_latency_interpreter():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
        assert gc.get_freeze_count() > 1000
    assert sys.getswitchinterval() == before_s
    assert gc.get_freeze_count() == 0


# Starts threads that all hold memory at the same time, and prints how many arenas malloc has.
_MANY_THREADS = """
import bot.__main__, ctypes, tempfile, threading
together = threading.Barrier(12)
def work():
    held = [bytes(50_000) for _ in range(20)]
    together.wait()
threads = [threading.Thread(target=work) for _ in range(12)]
for each in threads: each.start()
for each in threads: each.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as told:
    stream = ctypes.c_void_p(libc.fopen(told.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(told.read().count(b"<heap nr="))
"""


def arenas(**environ: str) -> int:
    """Return how many arenas malloc has in a process of the bot with many threads."""
    kept = {name: value for name, value in os.environ.items() if name not in ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")}
    done = subprocess.run(
        [sys.executable, "-c", _MANY_THREADS],
        env={**kept, "PYTHONPATH": os.pathsep.join(sys.path), **environ},
        capture_output=True,
        check=True,
        timeout=60,
    )
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the C library is not glibc")
def test_malloc_has_few_arenas_however_many_threads() -> None:
    """The process limits them before there are threads, unless the operator has chosen another number."""
    assert arenas() <= ARENAS
    assert ARENAS < arenas(MALLOC_ARENA_MAX="5") <= 5
