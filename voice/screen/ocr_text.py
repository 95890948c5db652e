"""Tracks the text on a screen between readings, and finds the new lines.

OCR reads the same line a little differently each time, and only changed areas are read again. Lines are therefore
compared by similarity, and numbers by how much they changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rapidfuzz.distance import Indel
from rapidfuzz.process import extractOne

from voice.screen.frame_diff import Box, merge_boxes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# More text than a person could read in a game, and more signs than fit into a line of 1280 pixels. A hostile picture
# may be full of lines, and comparing those of two such pictures takes 70 ms.
MAX_LINES: Final = 200
MAX_LINE_CHARS: Final = 220
# Below this score (0-1) the reader is guessing.
MIN_SCORE: Final = 0.6
# From this similarity (0-1) on, a line is an earlier line that was read a little differently.
_ALIKE: Final = 0.84
# A number that changed by less than this share of the larger value is a running counter.
_FIGURE_MOVE: Final = 0.25
# Margin around a known line when it is read again, as a fraction of the picture's width and height.
_MARGIN_X: Final = 0.01
_MARGIN_Y: Final = 0.012
# A line with fewer letters or digits than this is a stray mark.
_MIN_SIGNS: Final = 2

_CLOCK = re.compile(r"\b\d{1,3}[:.]\d{2}(?:[:.]\d{2})?\b")
_FIGURE = re.compile(r"\d+")
_SIGN = re.compile(r"\w")
_NO_SIGN = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class OcrLine:
    """One line of text. `box`: its place, in fractions of the picture. `score`: how sure the reader is (0-1)."""

    text: str
    box: Box
    score: float = 1.0


def clean_lines(lines: Iterable[OcrLine]) -> tuple[OcrLine, ...]:
    """Return the credible lines from top to bottom: with a high score, enough letters or digits, and no control
    characters.
    """
    kept: list[OcrLine] = []
    for line in lines:
        text = " ".join("".join(sign if sign.isprintable() else " " for sign in line.text).split())[:MAX_LINE_CHARS]
        if line.score >= MIN_SCORE and len(_SIGN.findall(text)) >= _MIN_SIGNS:
            kept.append(OcrLine(text, line.box, line.score))
    kept.sort(key=lambda line: (round(line.box.top, 2), line.box.left))
    return tuple(kept[:MAX_LINES])


def areas_to_read(changed: Sequence[Box], known: Sequence[OcrLine]) -> tuple[Box, ...]:
    """Return the areas to read after a change: the `changed` areas, extended to whole known lines.

    Otherwise half a line would be read as a new line.
    """
    lines = [line.box for line in known if any(line.box.touches(box) for box in changed)]
    return merge_boxes([*changed, *(_widened(box) for box in lines)])


def merge_lines(known: Sequence[OcrLine], read: Sequence[OcrLine], boxes: Sequence[Box]) -> tuple[OcrLine, ...]:
    """Return all lines on the screen after its areas `boxes` were read again."""
    elsewhere = [line for line in known if not any(_inside(line.box, box) for box in boxes)]
    return clean_lines((*elsewhere, *read))


def new_lines(before: Sequence[OcrLine], after: Sequence[OcrLine]) -> tuple[OcrLine, ...]:
    """Return the lines of `after` whose content is not in `before`. Takes about 3 ms for a full page."""
    known = [_said(line.text) for line in before]
    return tuple(line for line in after if not _adds_nothing(_said(line.text), known))


def is_same_content(line: str, old: str) -> bool:
    """Return whether a line adds nothing to an old line: it is similar, a part of it, or differs only in a running
    counter.
    """
    return _adds_nothing(_said(line), [_said(old)])


@dataclass(frozen=True, slots=True)
class _Said:
    """The parts of a line that are compared: its letters, and its numbers except clock times."""

    words: str
    figures: tuple[int, ...]


def _adds_nothing(new: _Said, known: Sequence[_Said]) -> bool:
    """Return whether one of the known lines has the same content."""
    likely = [old.words for old in known if _figures_stand(new.figures, old.figures)]
    if not new.words:
        # Numbers beside words mean something else than numbers alone.
        return "" in likely
    if any(new.words in words for words in likely):
        return True
    return extractOne(new.words, likely, scorer=Indel.normalized_similarity, score_cutoff=_ALIKE) is not None


def _said(text: str) -> _Said:
    text = _CLOCK.sub(" ", text)
    figures = tuple(int(each[:12]) for each in _FIGURE.findall(text))
    return _Said(_NO_SIGN.sub("", _FIGURE.sub("", text)).casefold(), figures)


def _figures_stand(figures: Sequence[int], old_figures: Sequence[int]) -> bool:
    """Return whether the numbers are the same or changed only slightly."""
    if len(figures) > len(old_figures):
        return False
    if len(figures) < len(old_figures):
        # The new line is a part of the old one, so each of its numbers must be in the old line.
        return all(figure in old_figures for figure in figures)
    return all(
        abs(new - former) < _FIGURE_MOVE * max(new, former, 1) for new, former in zip(figures, old_figures, strict=True)
    )


def _widened(box: Box) -> Box:
    return Box(
        max(0.0, box.left - _MARGIN_X),
        max(0.0, box.top - _MARGIN_Y),
        min(1.0, box.right + _MARGIN_X),
        min(1.0, box.bottom + _MARGIN_Y),
    )


def _inside(line: Box, box: Box) -> bool:
    """Return whether the centre of a line lies in a box."""
    x, y = (line.left + line.right) / 2, (line.top + line.bottom) / 2
    return box.left <= x <= box.right and box.top <= y <= box.bottom
