"""Notes about a shared screen: its start, cuts, new text and answers to questions. Notes are short and
never repeated.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice.screen.frame_diff import WHOLE, Box
from voice.screen.notes import (
    MAX_NOTE_CHARS,
    TEXT_SPACING_S,
    NoteTaker,
    ReadFrame,
    ScreenNote,
    ScreenNoteReason,
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


def started(notes: NoteTaker) -> ScreenNote:
    note = notes.handle(ocr("Tokyo 2099", "HP 87", why=ScreenNoteReason.SHARE_START))
    assert note is not None
    return note


def test_a_share_begins_with_a_note() -> None:
    """The first note names the shared surface and quotes the text on it."""
    note = started(taker())
    assert note == ScreenNote(
        NOW,
        "a window, just shared. It reads “Tokyo 2099 · HP 87”",
        ScreenNoteReason.SHARE_START,
        VisionSource.OCR,
        "abc",
    )


def test_a_share_of_nothing_readable_begins_too() -> None:
    """A share without readable text begins with a note too."""
    note = taker().handle(ocr(why=ScreenNoteReason.SHARE_START))
    assert note is not None
    assert note.what == "a window, just shared."


def test_new_text_is_noted_with_what_is_new_alone() -> None:
    """A note about new text contains only the text that is new."""
    notes = taker()
    started(notes)
    note = notes.handle(ocr("Tokyo 2099", "HP 87", "Healer is down", at=NOW + 10))
    assert note is not None
    assert (note.what, note.why) == ("new text: “Healer is down”", ScreenNoteReason.TEXT)
    assert notes.handle(ocr("Tokyo 2099", "HP 87", "Healer is down", at=NOW + 20)) is None


def test_text_that_comes_fast_is_gathered() -> None:
    """Notes keep a minimum distance. Text that came in between is part of the next note, even if it is gone again."""
    notes = taker()
    started(notes)
    assert notes.handle(ocr("Get ready", at=NOW)) is not None
    assert notes.handle(ocr("First kill by Ada", at=NOW + 1)) is None
    assert notes.due_at == NOW + TEXT_SPACING_S
    assert notes.handle(ocr("Ben is down", at=NOW + 2)) is None
    assert notes.tick(NOW + 3) is None
    note = notes.tick(NOW + TEXT_SPACING_S, frame_hash="def")
    assert note is not None
    assert note.what == "new text: “First kill by Ada · Ben is down”"
    assert notes.due_at is None


def test_a_clock_that_is_set_back_delays_no_note() -> None:
    """By more than the pause between two notes."""
    notes = taker()
    started(notes)
    assert notes.handle(ocr("Get ready", at=NOW)) is not None
    assert notes.handle(ocr("First kill by Ada", at=NOW - 3_600)) is None
    note = notes.tick(NOW - 3_600 + TEXT_SPACING_S)
    assert note is not None
    assert note.what == "new text: “First kill by Ada”"


def test_what_waits_when_a_share_ends_is_noted() -> None:
    """Text that still waits when a share ends is noted. A text of a few stray letters is never noted."""
    notes = taker()
    started(notes)
    assert notes.handle(ocr("Get ready", at=NOW)) is not None
    assert notes.handle(ocr("First kill by Ada", at=NOW + 1)) is None
    note = notes.tick(NOW + 2, last=True)
    assert note is not None
    assert note.what == "new text: “First kill by Ada”"
    assert notes.handle(ocr("ok", at=NOW + 60)) is None
    assert notes.due_at is None
    assert notes.tick(NOW + 70, last=True) is None


def test_what_comes_back_is_no_news() -> None:
    """Text that was noted before is not noted again, for example when a menu is opened a second time."""
    notes = taker()
    started(notes)
    assert notes.handle(ocr("Settings menu", at=NOW + 10)) is not None
    assert notes.handle(ocr("Tokyo 2099", "HP 87", at=NOW + 20)) is None
    assert notes.handle(ocr("Settings menu", at=NOW + 30)) is None


def test_a_cut_tells_what_is_there_now() -> None:
    """The note after a cut quotes the new scene's text. A scene without text gives no note."""
    notes = taker()
    started(notes)
    note = notes.handle(ocr("Victory", "Ada 12 kills", why=ScreenNoteReason.CUT, at=NOW + 1))
    assert note is not None
    assert (note.what, note.why) == ("now: “Victory · Ada 12 kills”", ScreenNoteReason.CUT)
    assert notes.handle(ocr(why=ScreenNoteReason.CUT, at=NOW + 2)) is None


def test_who_asks_gets_what_stands_there() -> None:
    """A question gets all text on the screen, new or not, and takes nothing away from later notes."""
    notes = taker()
    started(notes)
    note = notes.handle(ocr("Tokyo 2099", "HP 87", why=ScreenNoteReason.ASKED, at=NOW + 1))
    assert note is not None
    assert note.what == "It reads “Tokyo 2099 · HP 87”"
    assert notes.last.startswith("a window, just shared")


def test_a_models_words_are_the_note() -> None:
    """A model's description becomes the note. The same description is noted again only if somebody asked."""
    notes = taker()
    first = notes.handle(told("Marvel Rivals, the Tokyo map", ScreenNoteReason.SHARE_START))
    assert first is not None
    assert first.what == "a window, just shared: Marvel Rivals, the Tokyo map"
    assert first.source is VisionSource.MODEL
    second = notes.handle(told("A fight at the bridge."))
    assert second is not None
    assert notes.handle(told("A fight at the bridge")) is None
    assert notes.handle(told(" \n ")) is None
    assert notes.handle(told("A fight at the bridge", ScreenNoteReason.ASKED)) is not None


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
