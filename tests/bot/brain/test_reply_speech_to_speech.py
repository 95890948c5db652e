"""Replies by speech-to-speech: reporting how much was heard, and falling back to text after failures."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bot.brain.speech_output import BLOCKED, MODEL_BROKE_OFF
from tests.bot.brain.test_reply import FIRST, Bench
from tests.fakes.brain import ScriptedResponder, until
from voice.audio import DISCORD_RATE_HZ
from voice.errors import RealtimeError
from voice.speaking.moderation import ForbiddenWordsError
from voice.speaking.playback import QUEUE_PIECES
from voice.speaking.port import Speech

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from bot.brain.reply import Question


class Speaker:
    """A fake speech-to-speech model that speaks one second for each word and raises the exceptions among its words, and
    in place of a forbidden word. `glued`: there are no spaces between its words.
    """

    def __init__(self, *words: str | BaseException, gone_after: bool = False, glued: bool = False) -> None:
        self.words = words
        self.glued = glued
        self.usable = True
        self.gone_after = gone_after
        self.told: list[tuple[float, bool]] = []

    async def speak(self, question: Question, *, forbids: Callable[[str], bool]) -> AsyncGenerator[Speech, None]:
        for word in self.words:
            if isinstance(word, str) and forbids(word):
                raise ForbiddenWordsError
            if isinstance(word, BaseException):
                self.usable = not self.gone_after
                raise word
            yield Speech(word, np.full(DISCORD_RATE_HZ, 100, np.int16), DISCORD_RATE_HZ, self.glued)

    def report_heard(self, heard_s: float, *, complete: bool) -> None:
        """Keep the report."""
        self.told.append((round(heard_s, 2), complete))


def _bench(speaker: Speaker) -> Bench:
    bench = Bench(ScriptedResponder("Otherwise."))
    bench.replier._speech_to_speech = speaker
    return bench


GONE = RealtimeError("It is away.")
REMARK = replace(FIRST, asker_id="", may_skip=True)
UNHEARD = [(0.0, False)]


@pytest.mark.parametrize(
    ("question", "words", "text", "failure", "told", "spoken"),
    [
        pytest.param(FIRST, ("One", "two"), "One two", None, [(2.0, True)], [], id="it is played as it comes"),
        pytest.param(FIRST, (GONE,), "Otherwise.", None, UNHEARD, ["Otherwise."], id="it fails before any sound"),
        pytest.param(
            FIRST,
            ("One", GONE),
            f"One {MODEL_BROKE_OFF}",
            str(GONE),
            [(1.0, False)],
            [MODEL_BROKE_OFF],
            id="breaks off",
        ),
        pytest.param(FIRST, (), "Otherwise.", None, UNHEARD, ["Otherwise."], id="it says nothing to who asked"),
        pytest.param(replace(FIRST, may_skip=True), (), "", None, [(0.0, True)], [], id="it may say nothing"),
        pytest.param(REMARK, (GONE,), "", None, UNHEARD, [], id="nobody asked, and it fails"),
        pytest.param(
            replace(REMARK, asker_id="1"), (GONE,), "Otherwise.", None, UNHEARD, ["Otherwise."], id="somebody asked"
        ),
        pytest.param(REMARK, (asyncio.CancelledError(),), "", None, UNHEARD, [], id="a remark is cancelled inside"),
    ],
)
async def test_what_is_heard_of_it_and_what_the_model_is_told(
    question: Question,
    words: tuple[str | BaseException, ...],
    text: str,
    failure: str | None,
    told: list[tuple[float, bool]],
    spoken: list[str],
) -> None:
    """The responder answers if the model cannot, and somebody asked. Our own voice tells that a reply has broken off.
    The model is told how much was heard of its own sound.
    """
    speaker = Speaker(*words)
    bench = _bench(speaker)
    reply = await bench.answered(question)
    assert (reply.text, reply.failure, reply.skipped) == (text, failure, not text)
    assert (speaker.told, bench.voice.spoken) == (told, spoken)


async def test_who_talks_over_it_is_told_how_far_it_came() -> None:
    """After an interruption the model is sent the 1.5 s that were heard, and only the whole word is recorded."""
    speaker = Speaker("One", "two", "three")
    bench = _bench(speaker)
    async with bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bench.replier.speaking)
        await until(lambda: bench.playback.pieces.waiting > 1)
        bench.listener.pull(75)
        bench.replier.interrupt_current()
        reply = await bench.next_reply()
    assert (reply.text, reply.interrupted) == ("One", True)
    assert speaker.told == [(1.5, False)]


async def test_an_answer_without_spaces_is_recorded_without_them() -> None:
    """What was heard until the interruption is one text, as it was said."""
    bench = _bench(Speaker("今天", "天气", "很好。", glued=True))
    async with bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bench.playback.pieces.waiting == QUEUE_PIECES)
        bench.listener.pull(125)
        bench.replier.interrupt_current()
        reply = await bench.next_reply()
    assert (reply.text, reply.interrupted) == ("今天天气", True)


async def test_what_waited_for_room_is_not_heard_after_an_interruption() -> None:
    """Speech that waits until playback has room for it is not played when an interruption makes room."""
    bench = _bench(Speaker("One", "two", "three", "four", "five", "six"))
    async with bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bench.playback.pieces.waiting == QUEUE_PIECES)
        for _ in range(5):
            await asyncio.sleep(0)
        bench.listener.pull(75)
        bench.replier.interrupt_current()
        for _ in range(10):
            bench.listener.pull(10)
            await asyncio.sleep(0)
        reply = await bench.next_reply()
    assert (reply.text, bench.listener.frames) == ("One", 75)


async def test_who_was_interrupted_does_not_excuse_itself() -> None:
    """A reply that somebody has stopped needs no rest, whatever becomes of the model then."""
    speaker = Speaker("One", "two", "three", "four", "five", "six", RealtimeError("It is away."))
    bench = _bench(speaker)
    async with bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bench.playback.pieces.waiting == QUEUE_PIECES)
        bench.listener.pull(75)
        bench.replier.interrupt_current()
        for _ in range(10):
            bench.listener.pull(10)
            await asyncio.sleep(0)
        reply = await bench.next_reply()
    assert (reply.text, bench.voice.spoken) == ("One", [])


async def test_one_that_is_given_up_in_the_middle_is_told_of_elsewhere() -> None:
    """If speech-to-speech is given up in mid-reply, the reply reports no failure of its own in writing, because the end
    of speech-to-speech is already reported elsewhere. Who listens is told aloud.
    """
    speaker = Speaker("One", RealtimeError("It is away."), gone_after=True)
    bench = _bench(speaker)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        reply = await bench.next_reply()
        assert (reply.text, reply.failure) == (f"One {MODEL_BROKE_OFF}", None)
        bench.replier.ask(FIRST)
        assert (await bench.next_reply()).text == "Otherwise."


async def test_words_that_the_server_forbids_are_not_heard() -> None:
    """A reply ends before a blocked word, with what is queued of it; the model is told, and so is the channel."""
    speaker = Speaker("One", "two", "rudely", "four")
    bench = _bench(speaker)
    async with bench.running():
        bench.replier.ask(FIRST)
        reply = await bench.next_reply()
        bench.listener.pull(200)
    assert (reply.text, reply.failure) == ("", BLOCKED)
    assert speaker.told == [(0.0, False)]
    assert bench.listener.frames == 0
    assert bench.voice.spoken == []
