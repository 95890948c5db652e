"""Random schedules over the folding machine: a seeded walk that is fast enough for a million steps.

The walk plays everything around the machine: people, notes, the model, the store and its failures, restarts, late
answers, words that are forgotten or withheld, and the session's end. After each step the machine's invariants are
checked. `tests/compaction` has the same invariants over whole sessions, with examples that Hypothesis makes small.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

from compaction.model import Mode
from tests.endurance.schedule_model import Mood
from tests.endurance.scheduled_session import ScheduledSession

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.report import Json

SEED = 20_261_121
# A session of the walk ends for good after so many turns, so that every session has a beginning and an end.
MOST_TURNS = 900
# Batches that were folded before a session begins. From 64 on there are chapters of chapters, and from 512 on a level
# above these.
_BATCHES = (0, 0, 0, 0, 0, 0, 0, 0, 9, 40, 70)
_MANY_BATCHES, _MANY_SHARE = 509, 0.03
_PAUSES_S = (0.0, 0.5, 5.0, 40.0, 700.0)
_MODES = (Mode.SUMMARY, Mode.SUMMARY, Mode.SUMMARY, Mode.OFF)
_MOODS = (Mood.WELL, Mood.WELL, Mood.FAILS, Mood.REFUSES_CHAPTERS)
_NOTES = (1, 1, 1, 1, 1, 1, 5, 48)


class Walk:
    """One seeded walk. `counts`: how often each signal was sent, each event told, and what else happened."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.sessions = 0
        self._session = self._next_session()

    def _next_session(self) -> ScheduledSession:
        self.sessions += 1
        many = self._rng.random() < _MANY_SHARE
        batches = _MANY_BATCHES if many else self._rng.choice(_BATCHES)
        with_chapters = many or self._rng.random() < 0.5
        return ScheduledSession(self._rng, self.counts, batches=batches, with_chapters=with_chapters)

    def step(self) -> None:
        """Do one thing at random, and check the invariants."""
        rng, session = self._rng, self._session
        draw = rng.random()
        if draw < 0.14:
            session.talk(rng.randint(1, 12), stored=rng.random() < 0.9)
        elif draw < 0.60 and session.run is not None:
            session.answer(session.run)
        elif draw < 0.74:
            session.check()
        elif draw < 0.80:
            session.see(rng.choice(_NOTES))
        elif draw < 0.83:
            session.retire_notes()
        elif draw < 0.86:
            session.late_answer()
        elif draw < 0.90:
            session.wait(rng.choice(_PAUSES_S))
        elif draw < 0.92:
            session.store_turns()
        elif draw < 0.93:
            session.set_mode(rng.choice(_MODES))
        elif draw < 0.95:
            session.mood = rng.choice(_MOODS)
        elif draw < 0.955:
            # Mostly something of late: otherwise no chapter would stay.
            session.forget(rng.random() ** 3, notes=rng.choice((0, 1, 3)))
        elif draw < 0.965:
            session.refresh()
        elif draw < 0.968:
            session.archive()
        elif draw < 0.97:
            session.withhold()
        elif draw < 0.975:
            session.die()
        elif draw < 0.9765 or session.new_turns > MOST_TURNS:
            session.end()
            self._session = self._next_session()
        self._session.check_invariants()


def walk(steps: int, *, seed: int = SEED, on_steps: Callable[[int], None] = lambda count: None) -> dict[str, Json]:
    """Walk so many steps and return what happened. Raises AssertionError at the first broken invariant; the message
    has the step, which is the same with the same seed.
    """
    walker = Walk(seed)
    for number in range(steps):
        try:
            walker.step()
        except AssertionError as error:
            raise AssertionError(f"step {number} of seed {seed}: {error}") from error
        if number % 10_000 == 0:
            on_steps(min(10_000, steps - number))
    signals: dict[str, Json] = dict(sorted(walker.counts.items()))
    return {"steps": steps, "seed": seed, "sessions": walker.sessions, "happened": signals}
