"""Takes notes of a shared screen: few and short, like what a person who watches would remember.

A small state machine for one share: it gets readings and returns notes. It does not know the memory that stores them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from voice.screen.frame_diff import Box, ChangeKind
from voice.screen.ocr_text import OcrLine, is_same_content, merge_lines, new_lines
from voice.screen.port import VisionReading, VisionSource

if TYPE_CHECKING:
    from collections.abc import Sequence


# Minimum seconds between looks at new scenes. Scenes may change faster than a model answers, as in a film or a menu.
CUT_SPACING_S: Final = 3.0


# Seconds between two looks of a model while much changes, and while little changes. It looks sooner at a new scene, and
# does not look again at a still screen.
ACTIVE_S: Final = 10.0
IDLE_S: Final = 30.0

# The maximum length of a note, which the memory sets.
MAX_NOTE_CHARS: Final = 220
# Minimum seconds between two notes of text. New text waits for the next note. The memory's buffer holds twelve notes,
# and a scrolling chat would otherwise fill it within seconds.
TEXT_SPACING_S: Final = 4.0
# If there are fewer new characters than this (half a word, a price), wait for more.
_LEAST_SIGNS: Final = 4
# The last noted lines, which are not new when they come back, for example when a menu is closed or a sign blinks.
_REMEMBERED_LINES: Final = 60
_BETWEEN: Final = " · "
_FIGURE: Final = re.compile(r"\d+")
_OPENS, _CLOSES, _PLAIN_QUOTE = "“", "”", '"'


class ScreenNoteReason(StrEnum):
    """Why a note was taken."""

    SHARE_START = "share_start"
    CUT = "cut"
    TEXT = "text"
    INTERVAL = "interval"
    ASKED = "asked"


def reason_for(change: ChangeKind, *, by_model: bool) -> ScreenNoteReason:
    """Return why a note about this change is taken. `by_model`: a model looks; otherwise the text is read."""
    between = ScreenNoteReason.INTERVAL if by_model else ScreenNoteReason.TEXT
    return {ChangeKind.FIRST: ScreenNoteReason.SHARE_START, ChangeKind.CUT: ScreenNoteReason.CUT}.get(change, between)


def look_due_at(change: ChangeKind, looked_at: float, *, by_model: bool) -> float | None:
    """Return when to look at a screen that has changed since the last look, or None for never. `looked_at`: the last
    look. Both times use the same clock.
    """
    if change is ChangeKind.SAME:
        return None
    if not by_model or change is ChangeKind.FIRST:
        return looked_at
    spacing_s = {ChangeKind.CUT: CUT_SPACING_S, ChangeKind.VISUAL: ACTIVE_S}
    return looked_at + spacing_s.get(change, IDLE_S)


@dataclass(frozen=True, slots=True)
class ScreenNote:
    """One observation of a screen. `what`: one line of at most 220 characters. `at`: UTC epoch seconds. `changed`:
    which figure changed, in words, if one did. `asker`: who asked to look, if it is known.
    """

    at: float
    what: str
    why: ScreenNoteReason
    source: VisionSource
    frame_hash: str
    changed: str = ""
    asker: str = ""


@dataclass(frozen=True, slots=True)
class ReadFrame:
    """The result of reading one picture. `why`: the reason for the reading. `boxes`: the parts that were read. `at`:
    UTC epoch seconds.
    """

    reading: VisionReading
    why: ScreenNoteReason
    boxes: tuple[Box, ...]
    frame_hash: str
    at: float
    asker: str = ""


class NoteTaker:
    """Takes the notes of one share. Not thread-safe.

    `surface`: what is shared, in a word or two ('the whole screen', 'a window', 'a browser tab'). `lines`: the text on
    the screen now, from top to bottom. `last`: the text of the last note; empty before the first.
    """

    def __init__(self, *, surface: str) -> None:
        self._surface = surface
        self.lines: tuple[OcrLine, ...] = ()
        self._noted: list[OcrLine] = []
        self._waiting: tuple[OcrLine, ...] = ()
        self._text_note_at = float("-inf")
        self.last = ""

    @property
    def due_at(self) -> float | None:
        """Return when the waiting text may be noted (UTC epoch seconds), or None if there is too little text for a
        note.
        """
        return self._text_note_at + TEXT_SPACING_S if _weight(self._waiting) >= _LEAST_SIGNS else None

    def handle(self, seen: ReadFrame) -> ScreenNote | None:
        """Process a reading. Returns a note if the reading is worth one."""
        if seen.reading.source is VisionSource.MODEL:
            return self._described(seen)
        before = self.lines
        self.lines = merge_lines(before, seen.reading.lines, seen.boxes)
        if seen.why is ScreenNoteReason.ASKED:
            return self._note(seen, self._on_it(self.lines)) if self.lines else None
        fresh = new_lines((*before, *self._noted), self.lines)
        if seen.why is ScreenNoteReason.SHARE_START:
            return self._note(seen, f"{self._surface}, just shared. {self._on_it(self.lines)}".rstrip())
        if seen.why is ScreenNoteReason.CUT:
            # In another scene all lines belong together, and few of the earlier lines are still there.
            return self._note(seen, f"now: {_quoted(fresh)}") if _weight(fresh) >= _LEAST_SIGNS else None
        self._wait_for(fresh)
        return self.tick(seen.at, frame_hash=seen.frame_hash)

    def tick(self, now: float, *, frame_hash: str = "", last: bool = False) -> ScreenNote | None:
        """Return a note of the waiting text if it has waited long enough and is worth a note. `now`: UTC epoch seconds.
        `last`: the share is over, so do not wait any longer.
        """
        # Whoever sets the clock back delays no note by more than the usual pause.
        self._text_note_at = min(self._text_note_at, now)
        due_at = self.due_at
        if due_at is None or (now < due_at and not last):
            return None
        # Text that has disappeared meanwhile is noted too, because it was on the screen.
        fresh, self._waiting = self._waiting, ()
        seen = ReadFrame(VisionReading(VisionSource.OCR), ScreenNoteReason.TEXT, (), frame_hash, now)
        return self._note(seen, f"new text: {_quoted(fresh)}", fresh)

    def _described(self, seen: ReadFrame) -> ScreenNote | None:
        what = " ".join(seen.reading.description.split())
        if not what or (seen.why is not ScreenNoteReason.ASKED and is_same_content(what, self.last)):
            return None
        if seen.why is ScreenNoteReason.SHARE_START:
            what = f"{self._surface}, just shared: {what}"
        return self._note(seen, what)

    def _wait_for(self, fresh: Sequence[OcrLine]) -> None:
        self._waiting = (*self._waiting, *new_lines(self._waiting, fresh))

    def _note(self, seen: ReadFrame, what: str, noted: Sequence[OcrLine] | None = None) -> ScreenNote | None:
        what = shorten_note(what)
        changed = changed_figure(self._noted, () if noted is None else noted)
        self._noted = [*self._noted, *(self.lines if noted is None else noted)][-_REMEMBERED_LINES:]
        if seen.why is not ScreenNoteReason.ASKED:
            self.last = what
            if noted is None:
                self._waiting = ()
            else:
                self._text_note_at = seen.at
        return ScreenNote(seen.at, what, seen.why, seen.reading.source, seen.frame_hash, changed, seen.asker)

    @staticmethod
    def _on_it(lines: Sequence[OcrLine]) -> str:
        return f"It reads {_quoted(lines)}" if lines else ""


def changed_figure(before: Sequence[OcrLine], fresh: Sequence[OcrLine]) -> str:
    """Return which figure changed on the screen ('“HP 87” became “HP 40”'); empty if none did."""
    known = {_FIGURE.sub("#", line.text.casefold()): line.text for line in before}
    for line in fresh:
        old = known.get(_FIGURE.sub("#", line.text.casefold()))
        if old is not None and old != line.text and _FIGURE.search(line.text):
            return f"{_OPENS}{old}{_CLOSES} became {_OPENS}{line.text}{_CLOSES}"
    return ""


def shorten_note(what: str) -> str:
    """Shorten a note's text to its limit, cutting between words."""
    what = " ".join(what.split())
    if len(what) <= MAX_NOTE_CHARS:
        return what
    # Keep room for the ellipsis and the closing quotation mark.
    head = what[: MAX_NOTE_CHARS - 2]
    head = (head.rpartition(" ")[0] or head).rstrip(" ·,;:") + "…"
    return head + _CLOSES if head.count(_OPENS) > head.count(_CLOSES) else head


def _quoted(lines: Sequence[OcrLine]) -> str:
    """Return the lines as one quotation, to show that text on a screen is somebody else's words."""
    words = _BETWEEN.join(line.text for line in lines)
    return f"{_OPENS}{words.replace(_OPENS, _PLAIN_QUOTE).replace(_CLOSES, _PLAIN_QUOTE)}{_CLOSES}"


def _weight(lines: Sequence[OcrLine]) -> int:
    return sum(sign.isalnum() for line in lines for sign in line.text)
