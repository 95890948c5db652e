"""Tracks the text on a screen between readings, and finds the new lines.

OCR reads the same line a little differently each time, and only changed areas are read again. Lines are therefore
compared by similarity, and numbers by how much they changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
from rapidfuzz.distance import Indel

from voice.screen.frame_diff import Box, merge_boxes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

# More text than a person could read in a game. A hostile picture may be full of lines.
MAX_LINES: Final = 200
MAX_LINE_CHARS: Final = 300
# Below this score (0-1) the reader is guessing.
MIN_SCORE: Final = 0.6
# From this similarity (0-1) on, a line is an earlier line that was read a little differently.
_ALIKE: Final = 0.84
# How many old lines a new line is compared with letter by letter: those that share the most letters. If a line was only
# read differently, the old line is among them. Comparing all lines of a page would mean thousands of pairs.
_CLOSEST: Final = 3
# The maximum number of letters to compare for one reading, which takes about 8 ms. A hostile screen may be full of
# lines that share their letters.
_MOST_COMPARED: Final = 30_000
# The number of letter counters for a line: a power of two above the alphabet's 26.
_LETTERS: Final = 64
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
    lines = [line.box for line in known if any(_touch(line.box, box) for box in changed)]
    return merge_boxes([*changed, *(_widened(box) for box in lines)])


def merge_lines(known: Sequence[OcrLine], read: Sequence[OcrLine], boxes: Sequence[Box]) -> tuple[OcrLine, ...]:
    """Return all lines on the screen after its areas `boxes` were read again."""
    elsewhere = [line for line in known if not any(_inside(line.box, box) for box in boxes)]
    return clean_lines((*elsewhere, *read))


def new_lines(before: Sequence[OcrLine], after: Sequence[OcrLine]) -> tuple[OcrLine, ...]:
    """Return the lines of `after` whose content is not in `before`.

    Takes about 4 ms for a full page, and tens of milliseconds for the largest hostile page.
    """
    known = _Known([line.text for line in before])
    return tuple(line for line in after if not known.say(line.text))


def is_same_content(line: str, old: str) -> bool:
    """Return whether a line adds nothing to an old line: it is similar, a part of it, or differs only in a running
    counter.
    """
    return _Known([old]).say(line)


@dataclass(frozen=True, slots=True)
class _Said:
    """The parts of a line that are compared: its letters, and its numbers except clock times."""

    words: str
    figures: tuple[int, ...]


class _Known:
    """Known lines to compare with. Candidates are those that share the most letters with a new line, in any order."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._lines = [_said(text) for text in texts]
        self._letters = np.array([_letters_of(line.words) for line in self._lines]).reshape(-1, _LETTERS)
        self._lengths = np.array([len(line.words) for line in self._lines], np.int64)
        self._left = _MOST_COMPARED

    def say(self, text: str) -> bool:
        """Return whether one of the known lines has the same content."""
        new = _said(text)
        length = len(new.words)
        if not length:
            # A line of numbers is compared only with other lines of numbers, because numbers beside words mean
            # something else.
            return any(not old.words and _figures_stand(new.figures, old.figures) for old in self._lines)
        shared = np.minimum(self._letters, _letters_of(new.words)).sum(axis=1)
        if any(new.words in old.words and _stand(new, old) for old in self._at(np.flatnonzero(shared == length))):
            return True
        likeness = 2 * shared / (length + self._lengths)
        by_likeness = np.argsort(-likeness, kind="stable")
        alike = (old for old in self._at(by_likeness[likeness[by_likeness] >= _ALIKE]) if _stand(new, old))
        return any(self._alike(new.words, old.words) for old in islice(alike, _CLOSEST))

    def _at(self, places: NDArray[np.int64]) -> Iterator[_Said]:
        return (self._lines[place] for place in places)

    def _alike(self, words: str, old: str) -> bool:
        self._left -= len(old)
        return self._left >= 0 and Indel.normalized_similarity(words, old) >= _ALIKE


def _said(text: str) -> _Said:
    text = _CLOCK.sub(" ", text)
    figures = tuple(int(each[:12]) for each in _FIGURE.findall(text))
    return _Said(_NO_SIGN.sub("", _FIGURE.sub("", text)).casefold(), figures)


def _letters_of(words: str) -> NDArray[np.int64]:
    """Return how often each letter occurs. Letters of large alphabets share counters, so similarity may be
    overestimated.
    """
    signs = np.frombuffer(words.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.bincount(signs % _LETTERS, minlength=_LETTERS)


def _stand(new: _Said, old: _Said) -> bool:
    return _figures_stand(new.figures, old.figures)


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


def _touch(first: Box, second: Box) -> bool:
    return not (
        first.right <= second.left
        or second.right <= first.left
        or first.bottom <= second.top
        or second.bottom <= first.top
    )


def _inside(line: Box, box: Box) -> bool:
    """Return whether the centre of a line lies in a box."""
    x, y = (line.left + line.right) / 2, (line.top + line.bottom) / 2
    return box.left <= x <= box.right and box.top <= y <= box.bottom
