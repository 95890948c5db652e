"""Kills a process by SIGKILL at random moments of speech, folds, forgetting and shutdown.

Each process is forked from this one, which has imported everything, so that a kill takes a fraction of a second. The
next process checks what the killed one left. Phases and delays follow from the seed; where exactly the kill finds the
process depends on the machine too. Only for a process with one thread (`python -m tests.endurance`).
"""

from __future__ import annotations

import os
import random
import select
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from benchmarks.report import Json
from tests.bot.conftest import Place
from tests.endurance.databases import Databases
from tests.endurance.promises import Promises
from tests.endurance.victim import FAILED_STATUS, Activity, Phase, live

# Imported before the fork, because they are slow and many processes need them.
import alembic.command  # isort: skip  # noqa: F401
import bot.store.dialects.postgresql  # isort: skip  # noqa: F401


SEED = 20_261_121
# Kills of one database. Then a new one begins, so that checking everything in it stays cheap.
LIVES = 40
# A phase is killed at a moment of its usual length, and sometimes a little after it.
FIRST_GUESS_S = 0.1
AFTER_SHARE = 1.1
# What was killed before its end may be longer than was thought: a slow server, a busy machine.
LONGER = 1.05
# Folds go on until they are killed: about half of the kills come after the first one has landed.
FOLDS_SHARE = 2.0
# Speech does too, and a turn takes milliseconds.
SPEECH_S = 0.15
# A process that is neither killed nor done by then hangs.
HANGS_S = 300.0
PHASES = (Phase.SPEECH, Phase.FOLD, Phase.FOLD, Phase.FORGETTING, Phase.SHUTDOWN)


class KillError(AssertionError):
    """Something acknowledged was lost or doubled, or a database was damaged. The message says after which kill."""


@dataclass(slots=True)
class KillCounts:
    """What was done. `killed`: by phase. `amid`: by what was going on then, which may be several things at once.
    `finished`: phases that were over before the kill came, which do not count as kills. `turns`, `folds`: acknowledged
    ones.
    """

    killed: Counter[str] = field(default_factory=Counter)
    amid: Counter[str] = field(default_factory=Counter)
    finished: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    folds: int = 0
    databases: int = 0

    def figures(self, *, seed: int, wall_s: float) -> dict[str, Json]:
        """Return the figures for the report. All kills in it were survived: another one ends the run."""
        return {
            "kills": self.killed.total(),
            "seed": seed,
            "killed_in": {phase.value: self.killed[phase.value] for phase in Phase},
            "killed_amid": {activity.value: self.amid[activity.value] for activity in Activity},
            "finished_before_the_kill": {phase.value: self.finished[phase.value] for phase in Phase},
            "databases": self.databases,
            "acknowledged_turns": self.turns,
            "acknowledged_folds": self.folds,
            "seconds_a_kill": round(wall_s / max(1, self.killed.total()), 3),
        }


def kill(
    count: int, databases: Databases, *, seed: int = SEED, on_kill: Callable[[], None] = lambda: None
) -> KillCounts:
    """Kill `count` times. Raises KillError at the first thing that is lost, doubled or damaged."""
    assert threading.active_count() == 1, "only a process with one thread may be forked"
    rng = random.Random(seed)
    counts = KillCounts()
    usual_s: dict[Phase, float] = dict.fromkeys(Phase, FIRST_GUESS_S)
    while counts.killed.total() < count:
        counts.databases += 1
        _one_database(databases, count, rng, counts, usual_s, on_kill)
    return counts


def _one_database(
    databases: Databases,
    count: int,
    rng: random.Random,
    counts: KillCounts,
    usual_s: dict[Phase, float],
    on_kill: Callable[[], None],
) -> None:
    place, promises = databases.create(), Promises()
    for _ in range(LIVES):
        phase = rng.choice(PHASES)
        delay_s = rng.random() * _latest_s(phase, usual_s)
        life = _Life(place, phase, promises, counts)
        try:
            life.run(delay_s)
        except (AssertionError, sqlite3.Error, psycopg.Error) as error:
            raise KillError(f"After kill {counts.killed.total()} ({phase.value}): {error}") from error
        if life.took_s is not None:
            usual_s[phase] = (usual_s[phase] + life.took_s) / 2
        elif life.killed:
            usual_s[phase] *= LONGER
        if life.killed:
            counts.killed[phase.value] += 1
            counts.amid.update(name for name, going_on in life.amid.items() if going_on > 0)
            on_kill()
        if counts.killed.total() >= count:
            break
    _Life(place, Phase.SHUTDOWN, promises, counts).run(HANGS_S)
    databases.remove(place)


def _latest_s(phase: Phase, usual_s: dict[Phase, float]) -> float:
    """Return how long after its beginning a phase may be killed."""
    if phase is Phase.SPEECH:
        return SPEECH_S
    return usual_s[phase] * (FOLDS_SHARE if phase is Phase.FOLD else AFTER_SHARE)


class _Life:
    """One process. `killed`: whether it was. `took_s`: how long its phase took until its end or its first landed fold,
    if that came. `amid`: what was going on at its end.
    """

    def __init__(self, place: Place, phase: Phase, promises: Promises, counts: KillCounts) -> None:
        self._place, self._phase, self._promises, self._counts = place, phase, promises, counts
        self._begun_at: float | None = None
        self.killed = False
        self.amid: Counter[str] = Counter()
        self.took_s: float | None = None

    def run(self, delay_s: float) -> None:
        """Run the process, and kill it this long after its phase began, if it is not over."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            live(self._place, self._phase, self._promises, writing)
        os.close(writing)
        try:
            rest = self._listen(reading, pid, delay_s)
        finally:
            os.close(reading)
            if not self.killed:
                os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
        self.killed = os.WIFSIGNALED(status) and self.killed
        assert not rest.strip(b"\n") or self.killed, "half an acknowledgement of a process that was not killed"
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) != FAILED_STATUS
            self.took_s = self.took_s or self._since_begun_s()
            self._counts.finished[self._phase.value] += 1

    def _listen(self, reading: int, pid: int, delay_s: float) -> bytes:
        """Take the acknowledgements until the process is gone, and kill it when it is time. Return half a line."""
        waiting, until = b"", time.monotonic() + HANGS_S
        while True:
            due = until if self._begun_at is None else min(until, self._begun_at + delay_s)
            left_s = None if self.killed else max(0.0, due - time.monotonic())
            ready, _, _ = select.select([reading], [], [], left_s)
            if not ready:
                assert time.monotonic() < until, "the process hangs"
                os.kill(pid, signal.SIGKILL)
                self.killed = True
                continue
            heard = os.read(reading, 65_536)
            if not heard:
                return waiting
            *lines, waiting = (waiting + heard).split(b"\n")
            for line in lines:
                self._hear(line.decode())

    def _hear(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "failed":
            raise AssertionError(rest.replace("\x1f", "\n"))
        if word == "begun":
            self._begun_at = time.monotonic()
            return
        if word in ("in", "out"):
            self.amid[rest] += 1 if word == "in" else -1
            return
        before = self._promises.sessions[-1].turns
        self._promises.hear(line)
        self._counts.turns += word == "turns" and self._promises.sessions[-1].turns > before
        self._counts.folds += word == "landed"
        if word == "landed" and self._phase is Phase.FOLD:
            self.took_s = self.took_s or self._since_begun_s()

    def _since_begun_s(self) -> float:
        return time.monotonic() - (self._begun_at or time.monotonic())
