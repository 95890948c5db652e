"""When a shared screen is looked at, and what is noted: short notes that are never repeated."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.screen.frame_diff import WHOLE, Box, ChangeKind, FrameChange
from voice.screen.notes import (
    CUT_SPACING_S,
    MAX_NOTE_CHARS,
    TEXT_SPACING_S,
    NoteTaker,
    ReadFrame,
    ScreenNoteReason,
    look_due_at,
    reason_for,
    shorten_note,
)
from voice.screen.ocr_text import OcrLine
from voice.screen.port import VisionReading, VisionSource

NOW = 1_760_000_000.0


def ocr(*texts: str, why: ScreenNoteReason = ScreenNoteReason.TEXT, at: float = NOW) -> ReadFrame:
    lines = tuple(OcrLine(text, Box(0.1, 0.05 * n, 0.3, 0.05 * n + 0.04)) for n, text in enumerate(texts))
    return ReadFrame(VisionReading(VisionSource.OCR, lines), why, (WHOLE,), "abc", at)


def told(text: str, why: ScreenNoteReason = ScreenNoteReason.INTERVAL, at: float = NOW) -> ReadFrame:
    return ReadFrame(VisionReading(VisionSource.MODEL, description=text), why, (WHOLE,), "abc", at)


def taker() -> NoteTaker:
    return NoteTaker(surface="a window")


@dataclass(frozen=True)
class Tick:
    """Nothing is read, and time passes. `last`: the share is over."""

    at: float
    last: bool = False


START = (
    ocr("Tokyo 2099", "HP 87", why=ScreenNoteReason.SHARE_START),
    "a window, just shared. It reads “Tokyo 2099 · HP 87”",
)
READY = (ocr("Get ready"), "new text: “Get ready”")


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([START], id="the first note names the surface and quotes it"),
        pytest.param([(ocr(why=ScreenNoteReason.SHARE_START), "a window, just shared.")], id="nothing readable"),
        pytest.param(
            [
                START,
                (ocr("Tokyo 2099", "HP 87", "Healer is down", at=NOW + 10), "new text: “Healer is down”"),
                (ocr("Tokyo 2099", "HP 87", "Healer is down", at=NOW + 20), None),
            ],
            id="only what is new",
        ),
        pytest.param(
            [
                START,
                READY,
                (ocr("First kill by Ada", at=NOW + 1), None),
                (ocr("Ben is down", at=NOW + 2), None),
                (Tick(NOW + 3), None),
                (Tick(NOW + TEXT_SPACING_S), "new text: “First kill by Ada · Ben is down”"),
                (Tick(NOW + 60), None),
            ],
            id="text that comes fast is gathered, also if it is gone again",
        ),
        pytest.param(
            [
                START,
                READY,
                (ocr("First kill by Ada", at=NOW - 3_600), None),
                (Tick(NOW - 3_600 + TEXT_SPACING_S), "new text: “First kill by Ada”"),
            ],
            id="a clock that is set back delays no note by more than the pause",
        ),
        pytest.param(
            [
                START,
                READY,
                (ocr("First kill by Ada", at=NOW + 1), None),
                (Tick(NOW + 2, last=True), "new text: “First kill by Ada”"),
                (ocr("ok", at=NOW + 60), None),
                (Tick(NOW + 70, last=True), None),
            ],
            id="what waits when a share ends is noted, and a few stray letters never",
        ),
        pytest.param(
            [
                START,
                (ocr("Settings menu", at=NOW + 10), "new text: “Settings menu”"),
                (ocr("Tokyo 2099", "HP 87", at=NOW + 20), None),
                (ocr("Settings menu", at=NOW + 30), None),
            ],
            id="what comes back is no news",
        ),
        pytest.param(
            [
                START,
                (ocr("Victory", "Ada 12 kills", why=ScreenNoteReason.CUT, at=NOW + 1), "now: “Victory · Ada 12 kills”"),
                (ocr(why=ScreenNoteReason.CUT, at=NOW + 2), None),
            ],
            id="a cut tells what is there now",
        ),
        pytest.param(
            [START, (ocr("Tokyo 2099", "HP 87", why=ScreenNoteReason.ASKED), "It reads “Tokyo 2099 · HP 87”")],
            id="who asks gets what stands there, new or not",
        ),
        pytest.param(
            [
                (told("The Tokyo map", ScreenNoteReason.SHARE_START), "a window, just shared: The Tokyo map"),
                (told("A fight at the bridge."), "A fight at the bridge."),
                (told("A fight at the bridge"), None),
                (told(" \n "), None),
                (told("A fight at the bridge", ScreenNoteReason.ASKED), "A fight at the bridge"),
            ],
            id="a model's words are the note, again only if somebody asked",
        ),
    ],
)
def test_what_is_noted(steps: list[tuple[ReadFrame | Tick, str | None]]) -> None:
    """Of a share that begins with `START`, mostly."""
    notes, last = taker(), ""
    for step, what in steps:
        note = notes.tick(step.at, last=step.last) if isinstance(step, Tick) else notes.handle(step)
        assert (None if note is None else note.what) == what
        if note is not None and isinstance(step, ReadFrame):
            assert (note.why, note.source, note.frame_hash) == (step.why, step.reading.source, "abc")
        if what is not None and (isinstance(step, Tick) or step.why is not ScreenNoteReason.ASKED):
            last = what
        assert notes.last == last


def test_when_waiting_text_is_due_is_told() -> None:
    notes, due = taker(), list[float | None]()
    for reading in (START[0], READY[0], ocr("First kill by Ada", at=NOW + 1)):
        notes.handle(reading)
        due.append(notes.due_at)
    notes.tick(NOW + TEXT_SPACING_S)
    assert [*due, notes.due_at] == [None, None, NOW + TEXT_SPACING_S, None]


def test_a_quotation_that_is_cut_is_closed() -> None:
    """A shortened quotation still ends with a quotation mark, so that later text does not seem part of it."""
    note = taker().handle(ocr(*["“payload” everywhere"] * 40, why=ScreenNoteReason.SHARE_START))
    assert note is not None
    assert note.what.endswith("…”")
    assert note.what.count("“") == note.what.count("”") == 1


@given(
    st.lists(
        st.tuples(st.sampled_from(list(ScreenNoteReason)), st.lists(st.text(max_size=120), max_size=8), st.booleans())
    )
)
def test_no_note_is_too_long_or_more_than_a_line(readings: list[tuple[ScreenNoteReason, list[str], bool]]) -> None:
    """A note is never too long and is always one line, whatever is on the screen."""
    notes = taker()
    for index, (why, texts, by_model) in enumerate(readings):
        at = NOW + index
        note = notes.handle(told(" ".join(texts), why, at) if by_model else ocr(*texts, why=why, at=at))
        if note is not None:
            assert 0 < len(note.what) <= MAX_NOTE_CHARS
            assert note.what == " ".join(note.what.split())


@given(st.text(max_size=1000))
def test_shortening_never_lengthens(text: str) -> None:
    """Shortening never makes a note longer, and a note that fits is not changed."""
    short = shorten_note(text)
    assert len(short) <= MAX_NOTE_CHARS
    if len(" ".join(text.split())) <= MAX_NOTE_CHARS:
        assert short == " ".join(text.split())


@pytest.mark.parametrize(
    ("change", "by_model", "by_text"),
    [
        (ChangeKind.SAME, None, None),
        (ChangeKind.FIRST, 100, 100),
        (ChangeKind.CUT, 100 + CUT_SPACING_S, 100),
        (ChangeKind.VISUAL, 110, 100),
        (ChangeKind.TEXT, 130, 100),
    ],
)
def test_when_to_look(change: ChangeKind, by_model: float | None, by_text: float | None) -> None:
    """A model looks after an interval, because each look costs. Text is read at once, and an unchanged screen is not
    looked at.
    """
    assert look_due_at(change, 100, by_model=True) == by_model
    assert look_due_at(change, 100, by_model=False) == by_text


def test_changes_add_up() -> None:
    """Pending changes keep the greatest kind of change and every changed place."""
    left, right = Box(0, 0, 0.1, 0.1), Box(0.5, 0.5, 0.6, 0.6)
    pending = FrameChange()
    for each in (FrameChange(ChangeKind.TEXT, (left,)), FrameChange(), FrameChange(ChangeKind.VISUAL, (right,))):
        pending = pending.together(each)
    assert pending == FrameChange(ChangeKind.VISUAL, (left, right))
    assert pending.together(FrameChange(ChangeKind.CUT, (WHOLE,))) == FrameChange(ChangeKind.CUT, (WHOLE,))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (ChangeKind.FIRST, ScreenNoteReason.SHARE_START),
        (ChangeKind.CUT, ScreenNoteReason.CUT),
        (ChangeKind.VISUAL, ScreenNoteReason.INTERVAL),
        (ChangeKind.TEXT, ScreenNoteReason.INTERVAL),
    ],
)
def test_why_it_is_looked_at(change: ChangeKind, why: ScreenNoteReason) -> None:
    """Each kind of change gives the reason for a look. Without a model, a look after an interval has the
    reason TEXT.
    """
    assert reason_for(change, by_model=True) is why
    assert reason_for(change, by_model=False) is (ScreenNoteReason.TEXT if why is ScreenNoteReason.INTERVAL else why)
