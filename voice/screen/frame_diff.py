"""Detects changes between pictures by comparing small grey copies, to decide what to read again.

Reading a whole screen costs half a second of CPU time; comparing it costs a fraction of a millisecond. The thresholds
were measured on pictures of 1280x720 over a noisy scene (`roomtone bench screen`). The largest mean difference (0-255)
of a tile was:

- 1.0 when the same picture is saved as JPEG again, and 1.4 at a much lower quality;
- 3.1 when two digits of 16 pixels' height change, and 3.8 to 8 when digits of 28 pixels change;
- 8 to 21 for a new line of chat.

With tiles twice as large, saving the picture again and changing digits cannot be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from voice.screen.frame import LUMA_HEIGHT, LUMA_WIDTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

TILES_X: Final = 32
TILES_Y: Final = 18
_TILE_W: Final = LUMA_WIDTH // TILES_X
_TILE_H: Final = LUMA_HEIGHT // TILES_Y
# Text may have changed if the mean difference (0-255) of any tile is at least this.
TEXT_TILE: Final = 2.0
# From this mean difference of all cells (0-1) on, the picture has visibly changed, with or without text.
VISUAL_MEAN: Final = 0.01
# A new scene: at least `CUT_SHARE` of the cells differ by more than `CUT_CELL` (0-255).
CUT_CELL: Final = 24.0
CUT_SHARE: Final = 0.30
# The number of cells of the coarse comparison.
CELLS_X: Final = 64
CELLS_Y: Final = 36


class ChangeKind(IntEnum):
    """How a picture differs from the one that was last read, from the smallest change to the largest."""

    SAME = auto()
    # Small areas changed: see `FrameChange.boxes`.
    TEXT = auto()
    # Much of the picture moved, for example in a map, a game or a video.
    VISUAL = auto()
    # The picture shows another scene.
    CUT = auto()
    # There is no earlier picture.
    FIRST = auto()


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a picture. Its sides are fractions (0-1) of the picture's width and height."""

    left: float
    top: float
    right: float
    bottom: float

    def touches(self, other: Box) -> bool:
        """Return whether the boxes overlap."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


WHOLE: Final = Box(0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class FrameChange:
    """The kind and place of a change, or of several. `boxes`: the parts to read; empty for `SAME`."""

    change: ChangeKind = ChangeKind.SAME
    boxes: tuple[Box, ...] = ()

    def together(self, other: FrameChange) -> FrameChange:
        """Return both changes as one: the largest kind, and all parts."""
        return FrameChange(max(self.change, other.change), merge_boxes([*self.boxes, *other.boxes]))


class ChangeDetector:
    """Compares each picture with the last changed one, so that slow changes add up. Not thread-safe."""

    def __init__(self) -> None:
        self._before: NDArray[np.uint8] | None = None

    def look(self, luma: NDArray[np.uint8]) -> FrameChange:
        """Return how a picture changed, and remember the picture if it did. `luma`: uint8, (180, 320)."""
        verdict = compare_frames(self._before, luma)
        if verdict.change is not ChangeKind.SAME:
            self._before = luma
        return verdict


def compare_frames(before: NDArray[np.uint8] | None, now: NDArray[np.uint8]) -> FrameChange:
    """Return how `now` differs from `before`. Both are uint8, (180, 320)."""
    if before is None:
        return FrameChange(ChangeKind.FIRST, (WHOLE,))
    difference = np.abs(now.astype(np.int16) - before.astype(np.int16))
    tiles = difference.reshape(TILES_Y, _TILE_H, TILES_X, _TILE_W).mean(axis=(1, 3))
    cells = np.abs(_cells(now) - _cells(before))
    if float((cells > CUT_CELL).mean()) >= CUT_SHARE:
        return FrameChange(ChangeKind.CUT, (WHOLE,))
    if float(cells.mean()) / 255 >= VISUAL_MEAN:
        return FrameChange(ChangeKind.VISUAL, _boxes(tiles >= TEXT_TILE) or (WHOLE,))
    if float(tiles.max()) >= TEXT_TILE:
        return FrameChange(ChangeKind.TEXT, _boxes(tiles >= TEXT_TILE))
    return FrameChange()


def _cells(luma: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the picture scaled down to 64x36 cells, each the mean of its pixels."""
    height, width = luma.shape
    cells: NDArray[np.float64] = luma.reshape(CELLS_Y, height // CELLS_Y, CELLS_X, width // CELLS_X).mean(axis=(1, 3))
    return cells


def _boxes(changed: NDArray[np.bool_]) -> tuple[Box, ...]:
    """Return a box around each group of adjacent changed tiles, one tile wider on each side because words may extend
    further.
    """
    seen = np.zeros_like(changed)
    found: list[Box] = []
    for y, x in zip(*np.nonzero(changed), strict=True):
        if not seen[y, x]:
            found.append(_grown(_group(changed, seen, int(y), int(x))))
    return merge_boxes(found)


def _group(changed: NDArray[np.bool_], seen: NDArray[np.bool_], y: int, x: int) -> tuple[int, int, int, int]:
    """Return the bounds (top, left, bottom, right; in tiles, inclusive) of the group that contains tile (y, x)."""
    top, left, bottom, right = y, x, y, x
    waiting = [(y, x)]
    seen[y, x] = True
    while waiting:
        y, x = waiting.pop()
        top, left, bottom, right = min(top, y), min(left, x), max(bottom, y), max(right, x)
        for near_y in range(max(0, y - 1), min(TILES_Y, y + 2)):
            for near_x in range(max(0, x - 1), min(TILES_X, x + 2)):
                if changed[near_y, near_x] and not seen[near_y, near_x]:
                    seen[near_y, near_x] = True
                    waiting.append((near_y, near_x))
    return top, left, bottom, right


def _grown(bounds: tuple[int, int, int, int]) -> Box:
    top, left, bottom, right = bounds
    return Box(
        max(0, left - 1) / TILES_X,
        max(0, top - 1) / TILES_Y,
        min(TILES_X, right + 2) / TILES_X,
        min(TILES_Y, bottom + 2) / TILES_Y,
    )


def merge_boxes(boxes: list[Box]) -> tuple[Box, ...]:
    """Merge overlapping boxes until none overlap, so that no word is read twice."""
    apart = list(boxes)
    while (pair := next((two for two in combinations(apart, 2) if two[0].touches(two[1])), None)) is not None:
        first, second = pair
        whole = Box(
            min(first.left, second.left),
            min(first.top, second.top),
            max(first.right, second.right),
            max(first.bottom, second.bottom),
        )
        apart = [*(box for box in apart if box not in pair), whole]
    return tuple(sorted(apart, key=lambda box: (box.top, box.left)))
