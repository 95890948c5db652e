"""The text on a screen from one reading to the next: what is where, and what of it is new.

A reader sees the same line a little differently each time, and only the parts that changed are read again. So lines
are compared by likeness, figures by how far they moved, and what stands still is news to nobody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from voice.screen.gate import Box, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Lines a person could not read in a game either; a hostile picture may be full of them.
MAX_LINES: Final = 200
MAX_LINE_CHARS: Final = 300
# Below this the reader guesses (0-1).
MIN_SCORE: Final = 0.6
# A line so much like one that was there (0-1) is that line, read a little differently.
_ALIKE: Final = 0.84
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
class Line:
    """One line of text. `box`: where, in shares of the picture; `score`: how sure the reader is (0-1)."""

    text: str
    box: Box
    score: float = 1.0


def cleaned(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return the lines worth believing: sure, with something in them, without control characters, top to bottom."""
    kept: list[Line] = []
    for line in lines:
        text = " ".join("".join(sign if sign.isprintable() else " " for sign in line.text).split())[:MAX_LINE_CHARS]
        if line.score >= MIN_SCORE and len(_SIGN.findall(text)) >= _MIN_SIGNS:
            kept.append(Line(text, line.box, line.score))
    kept.sort(key=lambda line: (round(line.box.top, 2), line.box.left))
    return tuple(kept[:MAX_LINES])


def to_read(changed: Sequence[Box], known: Sequence[Line]) -> tuple[Box, ...]:
    """Return the parts to read where `changed` changed: those, with the known lines they touch whole.

    Half a line would be read as a new one.
    """
    lines = [line.box for line in known if any(_touch(line.box, box) for box in changed)]
    return joined([*changed, *(_widened(box) for box in lines)])


def merged(known: Sequence[Line], read: Sequence[Line], boxes: Sequence[Box]) -> tuple[Line, ...]:
    """Return all that stands on the screen after its parts `boxes` were read anew."""
    elsewhere = [line for line in known if not any(_inside(line.box, box) for box in boxes)]
    return cleaned((*elsewhere, *read))


def news(before: Sequence[Line], after: Sequence[Line]) -> tuple[Line, ...]:
    """Return the lines of `after` that say something `before` did not."""
    return tuple(line for line in after if not any(says_the_same(line.text, old.text) for old in before))


def says_the_same(line: str, old: str) -> bool:
    """Return whether a line is no news beside an old one: alike, a part of it, or the same with a figure that only
    ticks."""
    line, old = _CLOCK.sub(" ", line), _CLOCK.sub(" ", old)
    words, old_words = _letters(line), _letters(old)
    if not _alike(words, old_words):
        return False
    return _figures_stand(line, old)


def _alike(words: str, old: str) -> bool:
    if not words:
        # Nothing but figures: which, is judged elsewhere; beside words they are something else.
        return not old
    if words in old:
        return True
    return SequenceMatcher(None, words, old, autojunk=False).ratio() >= _ALIKE


def _figures_stand(line: str, old: str) -> bool:
    """Return whether the figures are the same as far as people care."""
    figures, old_figures = ([int(each[:12]) for each in _FIGURE.findall(text)] for text in (line, old))
    if len(figures) > len(old_figures):
        return False
    if len(figures) < len(old_figures):
        # A part of the old line: each figure must come from there.
        return all(figure in old_figures for figure in figures)
    return all(
        abs(new - former) < _FIGURE_MOVE * max(new, former, 1) for new, former in zip(figures, old_figures, strict=True)
    )


def _letters(text: str) -> str:
    return _NO_SIGN.sub("", _FIGURE.sub("", text)).casefold()


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
