"""What fails in a run and when: in a simulated evening, over a database, in a cluster.

A plan is made of `FaultStep`s. Each run has its own faults: a context manager breaks something when it is entered, and
mends it when it is left. `Faults` enters and leaves them as the plan says.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

FaultT = TypeVar("FaultT")


@dataclass(frozen=True, slots=True)
class FaultStep(Generic[FaultT]):
    """A fault begins, or is mended, so many seconds after the step before."""

    after_s: float
    fault: FaultT
    mends: bool = False

    def __str__(self) -> str:
        return f"+{self.after_s:g} {'mend' if self.mends else 'break'} {self.fault}"


class Faults(Generic[FaultT]):
    """The faults that last now. `make`: returns what breaks something while it is entered.

    *Ownership*: whoever carries a plan out calls `mend_all` in the end.
    """

    def __init__(self, make: Callable[[FaultT], AbstractAsyncContextManager[object]]) -> None:
        self._make = make
        self._lasting: dict[FaultT, AbstractAsyncContextManager[object]] = {}

    async def carry_out(self, step: FaultStep[FaultT]) -> None:
        """Break or mend what a step says."""
        if step.mends:
            await self._lasting.pop(step.fault).__aexit__(None, None, None)
        else:
            self._lasting[step.fault] = broken = self._make(step.fault)
            await broken.__aenter__()

    async def mend_all(self) -> None:
        """Mend all that is broken."""
        for fault in tuple(self._lasting):
            await self.carry_out(FaultStep(0.0, fault, mends=True))
