"""Decide when to read a changing screen again. Pure.

OCR costs no money and limits its own CPU share, so every change is read at once. A vision model costs a call each time:
soon for a new scene, now and then for movement, rarely for small changes, never for a still screen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from voice.screen.frame_diff import ChangeKind, merge_boxes
from voice.screen.notes import ScreenNoteReason

if TYPE_CHECKING:
    from voice.screen.frame_diff import Box, FrameChange

# Cuts may follow each other faster than a model answers: a film, a menu that is leafed through.
CUT_SPACING_S: Final = 3.0
_WEIGHT: Final = {ChangeKind.SAME: 0, ChangeKind.TEXT: 1, ChangeKind.VISUAL: 2, ChangeKind.CUT: 3, ChangeKind.FIRST: 4}


@dataclass(frozen=True, slots=True)
class LookIntervals:
    """How often a model looks: seconds between looks while much changes, and while little does.

    A change of scene is looked at sooner; a screen that stands still is not looked at again.
    """

    active_s: float = 10.0
    idle_s: float = 30.0


@dataclass(frozen=True, slots=True)
class PendingChange:
    """What has changed since the last look: the most of it, and where."""

    change: ChangeKind = ChangeKind.SAME
    boxes: tuple[Box, ...] = ()

    def with_verdict(self, verdict: FrameChange) -> PendingChange:
        """Return it with one more picture's change."""
        return self.together(PendingChange(verdict.change, verdict.boxes))

    def together(self, other: PendingChange) -> PendingChange:
        """Return both as one."""
        change = max(self.change, other.change, key=_WEIGHT.__getitem__)
        return PendingChange(change, merge_boxes([*self.boxes, *other.boxes]))

    def why(self, pace: LookIntervals | None) -> ScreenNoteReason:
        """Return what a look at it is taken for."""
        match self.change:
            case ChangeKind.FIRST:
                return ScreenNoteReason.SHARE_START
            case ChangeKind.CUT:
                return ScreenNoteReason.CUT
            case _:
                return ScreenNoteReason.TEXT if pace is None else ScreenNoteReason.INTERVAL

    def due_at(self, looked_at: float, pace: LookIntervals | None) -> float | None:
        """Return when to look, or None for never. `looked_at`: the last look; both on the same clock."""
        if self.change is ChangeKind.SAME:
            return None
        if pace is None or self.change is ChangeKind.FIRST:
            return looked_at
        match self.change:
            case ChangeKind.CUT:
                return looked_at + CUT_SPACING_S
            case ChangeKind.VISUAL:
                return looked_at + pace.active_s
            case _:
                return looked_at + pace.idle_s
