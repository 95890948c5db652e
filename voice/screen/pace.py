"""When a changing screen is looked at next. Pure.

Reading text costs no money, and its reader keeps its own share of the processor: whatever changed is read at once. A
model's look costs a call: a new scene is worth one soon, movement one now and then, small changes one more rarely, and
a screen that stands still none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from voice.screen.gate import Change, joined
from voice.screen.notes import Why

if TYPE_CHECKING:
    from voice.screen.gate import Box, Verdict

# Cuts may follow each other faster than a model answers: a film, a menu that is leafed through.
CUT_SPACING_S: Final = 3.0
_WEIGHT: Final = {Change.SAME: 0, Change.TEXT: 1, Change.VISUAL: 2, Change.CUT: 3, Change.FIRST: 4}


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a model looks: seconds between looks while much changes, and while little does."""

    active_s: float
    idle_s: float


@dataclass(frozen=True, slots=True)
class Pending:
    """What has changed since the last look: the most of it, and where."""

    change: Change = Change.SAME
    boxes: tuple[Box, ...] = ()

    def with_verdict(self, verdict: Verdict) -> Pending:
        """Return it with one more picture's change."""
        return self.together(Pending(verdict.change, verdict.boxes))

    def together(self, other: Pending) -> Pending:
        """Return both as one."""
        change = max(self.change, other.change, key=_WEIGHT.__getitem__)
        return Pending(change, joined([*self.boxes, *other.boxes]))

    def why(self, pace: Pace | None) -> Why:
        """Return what a look at it is taken for."""
        match self.change:
            case Change.FIRST:
                return Why.SHARE_START
            case Change.CUT:
                return Why.CUT
            case _:
                return Why.TEXT if pace is None else Why.INTERVAL

    def due_at(self, looked_at: float, pace: Pace | None) -> float | None:
        """Return when to look, or None for never. `looked_at`: the last look; both on the same clock."""
        if self.change is Change.SAME:
            return None
        if pace is None or self.change is Change.FIRST:
            return looked_at
        match self.change:
            case Change.CUT:
                return looked_at + CUT_SPACING_S
            case Change.VISUAL:
                return looked_at + pace.active_s
            case _:
                return looked_at + pace.idle_s
