"""The settings of the interpreter and of malloc in the bot's process."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bot import runtime_tuning
from bot.background_task import background_task
from bot.runtime_tuning import (
    ARENAS,
    RELEASE_EVERY_S,
    SWITCH_INTERVAL_S,
    low_latency_interpreter,
    release_free_memory,
)
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S


def test_turns_are_short_and_collections_too_while_it_lasts() -> None:
    """Inside the context, thread switches are short and existing objects are frozen. At its end, all is as before."""
    before_s = sys.getswitchinterval()
    # What the test run has frozen itself.
    gc.unfreeze()
    with low_latency_interpreter():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
        assert gc.get_freeze_count() > 1000
    assert sys.getswitchinterval() == before_s
    assert gc.get_freeze_count() == 0


# Needs 60 MB in small pieces for a moment, keeps one of a hundred, and prints how much of them the process still has
# before and after it gave free memory back.
_PEAK = """
import asyncio, bot.__main__
from bot.clock import SystemClock
from bot.runtime_tuning import release_free_memory

def resident_mb():
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * 4096 / 1e6

async def main():
    before = resident_mb()
    pieces = [bytes(3000) for _ in range(20_000)]
    kept = pieces[::100]
    del pieces
    held = resident_mb() - before
    task = asyncio.create_task(release_free_memory(SystemClock()))
    async with asyncio.timeout(300):
        while resident_mb() - before > held / 2:
            await asyncio.sleep(0.01)
    task.cancel()
    print(held, len(kept))

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc")
def test_memory_between_what_is_in_use_is_given_back() -> None:
    """malloc itself gives back only what lies behind the last piece in use."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    held_mb, kept = done.stdout.split()
    assert (float(held_mb) > 30, int(kept)) == (True, 200)


async def test_free_memory_is_given_back_every_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, because the models were just loaded, and from then on."""
    released: list[float] = []
    clock = FakeClock()
    malloc = SimpleNamespace(malloc_trim=lambda _: released.append(clock.monotonic()))
    monkeypatch.setattr(runtime_tuning, "ctypes", SimpleNamespace(CDLL=lambda _: malloc))
    async with background_task(release_free_memory(clock), name="memory-release"):
        for _ in range(3):
            await clock.until_somebody_sleeps()
            clock.advance(RELEASE_EVERY_S)
    assert [at - released[0] for at in released[:3]] == [0, RELEASE_EVERY_S, 2 * RELEASE_EVERY_S]


def test_numpy_computes_in_one_thread() -> None:
    """The process sets what numpy reads when it is first imported, unless the operator has chosen another number."""
    told = "import os, sys, bot.__main__; print(os.environ['OMP_NUM_THREADS'], 'numpy' in sys.modules)"
    others = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    for given, expected in (({}, "1 False"), ({"OMP_NUM_THREADS": "3"}, "3 False")):
        done = subprocess.run(
            [sys.executable, "-c", told],
            env={**others, **given, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.stdout.strip() == expected


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
        timeout=PATIENCE_S,
    )
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the C library is not glibc")
def test_malloc_has_few_arenas_however_many_threads() -> None:
    """The process limits them before there are threads, unless the operator has chosen another number."""
    assert arenas() <= ARENAS
    assert ARENAS < arenas(MALLOC_ARENA_MAX="5") <= 5
