"""Tells a machine that fails from a room that breaks its process: the first takes other processes with it. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.room.endings import ProcessLoss

# Links that are cut end at once, those that do not answer within 4.5 s (`link.listener`), on a busy machine later.
TOGETHER_S: Final = 10.0
# More processes than a machine has. Of those that are lost together the first ones do.
_MOST_KEPT: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Lost:
    """`loss`: of a room; None: the process waited for one."""

    machine: str
    run_id: str
    at: float
    loss: ProcessLoss | None


class MachineLosses:
    """The processes that were lost lately. `now`: returns the time in seconds, which only goes on."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._recent: deque[_Lost] = deque(maxlen=_MOST_KEPT)

    def note(self, machine: str, run_id: str, loss: ProcessLoss | None = None) -> None:
        """Note that a process is lost, which had the room of `loss`, or waited for one."""
        now = self._now()
        while self._recent and now - self._recent[0].at > TOGETHER_S:
            self._recent.popleft()
        others = [each for each in self._recent if each.machine == machine and each.run_id != run_id]
        self._recent.append(_Lost(machine, run_id, now, loss))
        if not others:
            return
        for found in (loss, *(each.loss for each in others)):
            if found is not None:
                found.with_others = True
