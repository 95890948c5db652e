"""When something that failed some times in a row is left alone, and when it is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Two time-outs in a row are what a conversation bears.
FAILURES_IN_A_ROW = 2
REST_S = 60.0


@dataclass(frozen=True, slots=True)
class Resting:
    """Something fails and is left alone. `since` its first failure in a row, `until` when it is tried again, in seconds
    of its clock; `until` None: at the next call, or never. `problem`: a plain sentence with the remedy."""

    since: float
    until: float | None
    problem: str


class Rest:
    """One thing's failures and the rest after them. Use it on one event loop.

    `on_try`: told when the rest is over and one call tries it again.
    """

    def __init__(
        self, *, failures_in_a_row: int, rest_s: float, monotonic: Callable[[], float], on_try: Callable[[], None]
    ) -> None:
        self._failures_in_a_row = failures_in_a_row
        self._rest_s = rest_s
        self._monotonic = monotonic
        self._on_try = on_try
        self._failures = 0
        self._since = 0.0
        self._until: float | None = None
        self._problem = ""

    @property
    def problem(self) -> str:
        """Return what was wrong the last time, empty since it works."""
        return self._problem

    @property
    def resting(self) -> Resting | None:
        """Return since when and why it is left alone, or None if it is not; while one call tries it, it still is."""
        return None if self._until is None else Resting(self._since, self._until, self._problem)

    def begin(self) -> bool:
        """Return whether to call it now. After a rest one call tries; those that come meanwhile do not wait for it."""
        if self._until is None:
            return True
        if self._monotonic() < self._until:
            return False
        self._until = self._monotonic() + self._rest_s
        self._on_try()
        return True

    def succeeded(self) -> None:
        """It works."""
        self._failures, self._until, self._problem = 0, None, ""

    def failed(self, problem: str) -> int:
        """It failed; return how often in a row."""
        now = self._monotonic()
        if not self._failures:
            self._since = now
        self._failures += 1
        self._problem = problem
        if self._failures >= self._failures_in_a_row:
            self._until = now + self._rest_s
        return self._failures
