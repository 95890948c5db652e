"""Track the text on a screen between readings, and find the new lines.

OCR reads the same line a little differently each time, and only changed areas are read again. So lines are compared by
similarity, and numbers by how far they moved.
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

# Lines a person could not read in a game either; a hostile picture may be full of them.
MAX_LINES: Final = 200
MAX_LINE_CHARS: Final = 300
# Below this the reader guesses (0-1).
MIN_SCORE: Final = 0.6
# A line so much like one that was there (0-1) is that line, read a little differently.
_ALIKE: Final = 0.84
# Compared letter by letter with so many old lines, those that share the most letters: a line that was read a little
# differently is the first of them, and a page of text has thousands of pairs.
_CLOSEST: Final = 3
# Letters gone through so for one reading, some 8 ms; a hostile screen may be full of lines that share their letters.
_MOST_COMPARED: Final = 30_000
# Counts of letters a line has: a power of two above the alphabet's 26.
_LETTERS: Final = 64
# A figure that moved by less than this share of the larger one is a counter at work.
_FIGURE_MOVE: Final = 0.25
# Room around a known line when it is read again, in shares of the picture's sides.
_MARGIN_X: Final = 0.01
_MARGIN_Y: Final = 0.012
# Less is a stray mark.
_MIN_SIGNS: Final = 2

_CLOCK = re.compile(r"\b\d{1,3}[:.]\d{2}(?:[:.]\d{2})?\b")
_FIGURE = re.compile(r"\d+")
_SIGN = re.compile(r"\w")
_NO_SIGN = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class OcrLine:
    """One line of text. `box`: where, in shares of the picture; `score`: how sure the reader is (0-1)."""

    text: str
    box: Box
    score: float = 1.0


def clean_lines(lines: Iterable[OcrLine]) -> tuple[OcrLine, ...]:
    """Return the lines worth believing: sure, with something in them, without control characters, top to bottom."""
    kept: list[OcrLine] = []
    for line in lines:
        text = " ".join("".join(sign if sign.isprintable() else " " for sign in line.text).split())[:MAX_LINE_CHARS]
        if line.score >= MIN_SCORE and len(_SIGN.findall(text)) >= _MIN_SIGNS:
            kept.append(OcrLine(text, line.box, line.score))
    kept.sort(key=lambda line: (round(line.box.top, 2), line.box.left))
    return tuple(kept[:MAX_LINES])


def areas_to_read(changed: Sequence[Box], known: Sequence[OcrLine]) -> tuple[Box, ...]:
    """Return the parts to read where `changed` changed: those, with the known lines they touch whole.

    Half a line would be read as a new one.
    """
    lines = [line.box for line in known if any(_touch(line.box, box) for box in changed)]
    return merge_boxes([*changed, *(_widened(box) for box in lines)])


def merge_lines(known: Sequence[OcrLine], read: Sequence[OcrLine], boxes: Sequence[Box]) -> tuple[OcrLine, ...]:
    """Return all that stands on the screen after its parts `boxes` were read anew."""
    elsewhere = [line for line in known if not any(_inside(line.box, box) for box in boxes)]
    return clean_lines((*elsewhere, *read))


def new_lines(before: Sequence[OcrLine], after: Sequence[OcrLine]) -> tuple[OcrLine, ...]:
    """Return the lines of `after` that say something `before` did not.

    Some 4 ms for a full page, tens for the most that a hostile one can hold.
    """
    known = _Known([line.text for line in before])
    return tuple(line for line in after if not known.say(line.text))


def is_same_content(line: str, old: str) -> bool:
    """Return whether a line is no news beside an old one: alike, a part of it, or the same with a figure that only
    ticks."""
    return _Known([old]).say(line)


@dataclass(frozen=True, slots=True)
class _Said:
    """What of a line is compared: its letters, and its figures but for the clock's."""

    words: str
    figures: tuple[int, ...]


class _Known:
    """Lines that others are compared with. Which are worth it is found by how many letters they share, in any order."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._lines = [_said(text) for text in texts]
        self._letters = np.array([_letters_of(line.words) for line in self._lines]).reshape(-1, _LETTERS)
        self._lengths = np.array([len(line.words) for line in self._lines], np.int64)
        self._left = _MOST_COMPARED

    def say(self, text: str) -> bool:
        """Return whether one of the lines says the same."""
        new = _said(text)
        length = len(new.words)
        if not length:
            # Nothing but figures: beside words they are something else.
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
    """Return how often each letter is there; letters of large alphabets share a count, so more may seem shared."""
    signs = np.frombuffer(words.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.bincount(signs % _LETTERS, minlength=_LETTERS)


def _stand(new: _Said, old: _Said) -> bool:
    return _figures_stand(new.figures, old.figures)


def _figures_stand(figures: Sequence[int], old_figures: Sequence[int]) -> bool:
    """Return whether the figures are the same as far as people care."""
    if len(figures) > len(old_figures):
        return False
    if len(figures) < len(old_figures):
        # A part of the old line: each figure must come from there.
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
    """Return whether a line's middle lies in a box."""
    x, y = (line.left + line.right) / 2, (line.top + line.bottom) / 2
    return box.left <= x <= box.right and box.top <= y <= box.bottom
