"""Captions in another language: one call for some lines, and the original where the model gives none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bot.posts.translation import AGAIN_AFTER_S, AWAY, MARK, MOST_CHARS_AT_ONCE, NO_MODEL, CaptionTranslator
from bot.posts.words import MOST_CHARS, WrittenLine
from compaction.errors import CompletionError
from compaction.model import Seq
from compaction.ports import CompletionAnswer, CompletionRequest
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import FakeRoomChannel

HELLO = WrittenLine(Seq(1), 60.0, 0.0, "1", "Ada", "Hello **there**.", "en")


class Interpreter:
    """A text model that says what the test wants, or raises it. Implements `Completion`."""

    model = "interpreter"

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.asked: list[CompletionRequest] = []

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Keep the request and answer."""
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return CompletionAnswer(self.answer, "stop", 10, 10)


class Booth:
    """The translation into German of one room, and what it has told people."""

    def __init__(self, *lines: str, answer: str | Exception | None = None) -> None:
        self.clock = FakeClock()
        self.channel = FakeRoomChannel()
        self.model = Interpreter(json.dumps({"lines": lines}) if answer is None else answer)
        self.translator = self.of(self.model)

    def of(self, model: Interpreter | None) -> CaptionTranslator:
        return CaptionTranslator(model, "de", self.channel, clock=self.clock)

    @property
    def told(self) -> list[str]:
        return self.channel.written


async def test_a_translation_is_marked_and_covers_the_original() -> None:
    """Neither formats anything. What was heard in the language needs none, nor does what the model leaves as it is."""
    booth = Booth("Hallo *du*.", "Ja.")
    german, own = replace(HELLO, text="Guten Tag.", language="de"), replace(HELLO, text="Ja.", language="")
    found = await booth.translator.translate([HELLO, german, own])
    line = f"<t:60:t> **Ada:** Hallo \\*du\\*.\n-# {MARK} ||Hello \\*\\*there\\*\\*.||"
    assert [str(each) for each in found.values()] == [line, "<t:60:t> **Ada:** Ja."]
    assert "Guten Tag" not in booth.model.asked[0].prompt
    # What is translated is not translated again.
    assert await booth.translator.translate([*found.values(), german]) == {}


async def test_a_call_is_bounded() -> None:
    """It has some lines, and one at least. Of a line that fills a message the translation alone is shown."""
    long = replace(HELLO, text="x" * (MOST_CHARS_AT_ONCE - 10))
    booth = Booth("y" * 1_000)
    found = await booth.translator.translate([long, HELLO, HELLO])
    assert list(found) == [long]
    assert len(str(found[long])) < MOST_CHARS
    assert "||" not in str(found[long])


@pytest.mark.parametrize(
    "answer",
    [
        CompletionError("The model is overloaded.", retryable=True),
        TimeoutError(),
        "Hallo!",
        '{"lines": []}',
        '{"lines": ["Hallo.", "Noch eine."]}',
        '{"lines": [" "]}',
        '{"lines": 5}',
        "[]",
        "",
    ],
)
async def test_a_model_that_is_away_is_told_once_and_asked_later(answer: str | Exception) -> None:
    """Meanwhile lines are shown as they were said. Once it has translated again, its next outage is told."""
    booth = Booth(answer=answer)
    for _ in range(2):
        assert await booth.translator.translate([HELLO]) == {}
    assert (len(booth.model.asked), booth.told) == (1, [AWAY])
    booth.clock.advance(AGAIN_AFTER_S)
    await booth.translator.translate([HELLO])
    assert (len(booth.model.asked), booth.told) == (2, [AWAY])
    booth.model.answer = '{"lines": ["Hallo."]}'
    booth.clock.advance(AGAIN_AFTER_S)
    assert await booth.translator.translate([HELLO])
    booth.model.answer = answer
    await booth.translator.translate([HELLO])
    assert booth.told == [AWAY, AWAY]


async def test_without_a_model_captions_say_so_once() -> None:
    """They go on in the language that is spoken."""
    booth = Booth()
    translator = booth.of(None)
    for _ in range(2):
        assert await translator.translate([HELLO]) == {}
    assert booth.told == [NO_MODEL]


async def test_of_lines_that_a_model_miscounts_the_first_goes_alone() -> None:
    """A small model may have one line for two; nobody waits a minute for that."""
    booth, bye = Booth("Hallo."), replace(HELLO, seq=Seq(2), text="Bye.")
    assert list(await booth.translator.translate([HELLO, bye])) == [HELLO]
    assert (len(booth.model.asked), booth.told) == (2, [])
