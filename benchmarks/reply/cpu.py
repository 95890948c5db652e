"""Which part of the bot takes how much processor time: that of the models' threads, by their names.

A thread that a model's library starts has the name of the thread that loaded it (`voice.daemon_thread`), so all of a
model's work counts as its own. What else the process does is the rest: the event loop, the context of a reply, Opus,
and in a benchmark also the local Discord, its people and the model's server.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bot.models.voices import VOICES

if TYPE_CHECKING:
    from collections.abc import Mapping

# The stages, by how the names of their threads begin.
STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "recognition": ("speech-model",),
    "turn_models": ("turn-model",),
    "memory": ("embedder",),
    "synthesis": tuple(sorted({voice.engine.name.lower() for voice in VOICES})),
}
REST: Final = "rest"
_TASKS = Path("/proc/self/task")


def cpu_by_stage() -> dict[str, float]:
    """Return the seconds of processor time that each stage has taken since the process began. Only Linux tells the
    stages; elsewhere all is the rest. A thread that has ended counts as the rest.
    """
    whole = time.process_time()
    used = dict.fromkeys(STAGES, 0.0)
    for name, seconds in _threads() if sys.platform == "linux" else ():
        for stage, beginnings in STAGES.items():
            if name.startswith(beginnings):
                used[stage] += seconds
    return {**used, REST: max(0.0, whole - sum(used.values()))}


def cpu_since(before: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each stage since `before`."""
    return {stage: max(0.0, seconds - before[stage]) for stage, seconds in cpu_by_stage().items()}


def _threads() -> list[tuple[str, float]]:
    """Return the name and the processor time of each thread, in seconds."""
    found = []
    for task in _TASKS.iterdir():
        # A thread may end meanwhile.
        with suppress(OSError):
            name, _, fields = (task / "stat").read_text("utf-8").partition("(")[2].rpartition(")")
            # Behind the name, the 12th and 13th are the time in the program and in the kernel (proc_pid_stat(5)).
            found.append((name, sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")))
    return found
