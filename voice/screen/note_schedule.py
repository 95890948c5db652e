"""Decides when to read a changing screen again. Pure.

OCR costs no money and limits its own CPU share, so every change is read at once. A vision model costs money for each
call. It is called soon after a new scene, less often for movement, rarely for small changes, and never for a still
screen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from voice.screen.frame_diff import ChangeKind, merge_boxes
from voice.screen.notes import ScreenNoteReason

if TYPE_CHECKING:
    from voice.screen.frame_diff import Box, FrameChange

# Minimum seconds between looks at new scenes. Scenes may change faster than a model answers, as in a film or a menu.
CUT_SPACING_S: Final = 3.0
_WEIGHT: Final = {ChangeKind.SAME: 0, ChangeKind.TEXT: 1, ChangeKind.VISUAL: 2, ChangeKind.CUT: 3, ChangeKind.FIRST: 4}


@dataclass(frozen=True, slots=True)
class LookIntervals:
    """Seconds between two looks of a model: `active_s` while much changes, `idle_s` while little changes.

    The model looks sooner at a new scene, and does not look again at a still screen.
    """

    active_s: float = 10.0
    idle_s: float = 30.0


@dataclass(frozen=True, slots=True)
class PendingChange:
    """The changes since the last look: the largest kind, and where."""

    change: ChangeKind = ChangeKind.SAME
    boxes: tuple[Box, ...] = ()

    def with_verdict(self, verdict: FrameChange) -> PendingChange:
        """Return the pending change extended by another picture's change."""
        return self.together(PendingChange(verdict.change, verdict.boxes))

    def together(self, other: PendingChange) -> PendingChange:
        """Return both changes combined."""
        change = max(self.change, other.change, key=_WEIGHT.__getitem__)
        return PendingChange(change, merge_boxes([*self.boxes, *other.boxes]))

    def why(self, intervals: LookIntervals | None) -> ScreenNoteReason:
        """Return the reason for a note about this change."""
        match self.change:
            case ChangeKind.FIRST:
                return ScreenNoteReason.SHARE_START
            case ChangeKind.CUT:
                return ScreenNoteReason.CUT
            case _:
                return ScreenNoteReason.TEXT if intervals is None else ScreenNoteReason.INTERVAL

    def due_at(self, looked_at: float, intervals: LookIntervals | None) -> float | None:
        """Return when to look at the screen, or None for never. `looked_at`: the last look. Both times use the same
        clock.
        """
        if self.change is ChangeKind.SAME:
            return None
        if intervals is None or self.change is ChangeKind.FIRST:
            return looked_at
        match self.change:
            case ChangeKind.CUT:
                return looked_at + CUT_SPACING_S
            case ChangeKind.VISUAL:
                return looked_at + intervals.active_s
            case _:
                return looked_at + intervals.idle_s
