"""Reading lines has a bound: a page of small print is read in part, and the process is not taken for a hung one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from tests.voice.screen.screens import jpeg, screen
from voice.screen import picture_worker
from voice.screen.picture_worker import BoundedRecogniser

SHORT, LONG = (48, 300, 3), (9, 1_272, 3)


@dataclass
class Lines:
    """What the recogniser returns, like `rapidocr`'s."""

    imgs: list[Any]
    txts: tuple[str, ...]
    scores: tuple[float, ...]
    word_results: tuple[None, ...]


class Recogniser:
    """Reads a line as its number, and takes `line_s` for each."""

    def __init__(self, *, line_s: float = 0.0) -> None:
        self.line_s = line_s
        self.now = 100.0
        self.order: list[str] = []
        self.bounded = BoundedRecogniser(SimpleNamespace(recognize_txt=self.recognise), monotonic=lambda: self.now)

    def recognise(self, images: list[Any]) -> Lines:
        (image,) = images
        self.now += self.line_s
        self.order.append(image.text)
        return Lines(images, (image.text,), (0.9,), (None,))

    def read(self, *shapes: tuple[int, int, int]) -> list[str]:
        images = [SimpleNamespace(shape=shape, text=str(number)) for number, shape in enumerate(shapes)]
        found = self.bounded(images)
        assert found.imgs is images
        assert len(found.scores) == len(found.word_results) == len(images)
        assert all((score > 0) == bool(text) for text, score in zip(found.txts, found.scores, strict=True))
        return list(found.txts)


def test_a_usual_screen_is_read_whole() -> None:
    """Each line is told in its place, whatever the order in which they are read."""
    recogniser = Recogniser()
    recogniser.bounded.begin()
    assert recogniser.read(LONG, SHORT, LONG, SHORT) == ["0", "1", "2", "3"]
    assert recogniser.order == ["1", "3", "0", "2"]
    assert not recogniser.bounded.is_over


def test_of_small_print_a_part_is_read() -> None:
    """A full page of it took half a minute of a core, was killed, and left all rooms without a reader."""
    recogniser = Recogniser(line_s=0.25)
    recogniser.bounded.begin()
    read = [text for text in recogniser.read(*[LONG] * 130, SHORT) if text]
    assert "130" in read, "headings and figures come first"
    assert 10 < len(read) < 30
    assert recogniser.bounded.is_over
    recogniser.bounded.begin()
    assert recogniser.read(SHORT) == ["0"], "the next picture is read"


def test_on_a_busy_machine_it_ends_in_time() -> None:
    """What was read by then is told. At least one line is."""
    recogniser = Recogniser(line_s=2.0)
    recogniser.bounded.begin()
    assert recogniser.read(*[SHORT] * 5) == ["0", "1", "2", "", ""]
    assert recogniser.bounded.is_over
    assert recogniser.read(SHORT, SHORT) == ["0", ""]


@pytest.mark.slow
def test_the_real_reader_is_bounded() -> None:
    """It asks for all lines of a picture at once, where it is bounded."""
    engine, picture = picture_worker.new_engine(), jpeg(screen())
    whole = [[0.0, 0.0, 1.0, 1.0]]
    # The time is over when the first line has been read.
    clock = count(0.0, 0.6 * picture_worker.READ_S)
    engine.recognize_txt = BoundedRecogniser(engine, monotonic=lambda: next(clock))
    ((text, *_),) = picture_worker.read_lines(engine, picture, [*whole, *whole])
    assert text == "Round 2 of 3", "the shortest line"
