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


@pytest.mark.asyncio
async def test_it_is_played_as_it_comes() -> None:
    """The model's sound is played as it arrives, and neither the responder nor the voice is used."""
    speaker = Speaker("One", "two", "three")
    bench = _bench(speaker)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        reply = await bench.next_reply()
    assert (reply.text, reply.interrupted, reply.failure) == ("One two three", False, None)
    assert speaker.told == [(3.0, True)]
    assert bench.voice.spoken == []


@pytest.mark.asyncio
async def test_who_talks_over_it_is_told_how_far_it_came() -> None:
    """After an interruption the model is sent the 1.5 s that were heard, and only the whole word is recorded."""
    speaker = Speaker("One", "two", "three")
    bench = _bench(speaker)
    async with bench.running():
        bench.replier.ask(FIRST)
        await until(lambda: bench.replier.speaking)
        await until(lambda: len(bench.replier._progress.pieces) > 1 if bench.replier._progress else False)
        bench.listener.pull(75)
        bench.replier.interrupt_current()
        reply = await bench.next_reply()
    assert (reply.text, reply.interrupted) == ("One", True)
    assert speaker.told == [(1.5, False)]


@pytest.mark.asyncio
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


@pytest.mark.asyncio
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


@pytest.mark.asyncio
async def test_a_failure_before_any_sound_is_answered_the_other_way() -> None:
    """If speech-to-speech fails before any sound, the responder answers and no failure is reported."""
    speaker = Speaker(RealtimeError("It is away."))
    bench = _bench(speaker)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        reply = await bench.next_reply()
    assert (reply.text, reply.failure) == ("Otherwise.", None)
    assert speaker.told == [(0.0, False)]


@pytest.mark.asyncio
async def test_a_failure_in_the_middle_is_told() -> None:
    """If speech-to-speech fails in mid-reply, our own voice says so, the heard part is recorded and the failure is
    reported. The model is told of its own sound alone.
    """
    speaker = Speaker("One", RealtimeError("It is away."))
    bench = _bench(speaker)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        reply = await bench.next_reply()
    assert (reply.text, reply.failure) == (f"One {MODEL_BROKE_OFF}", "It is away.")
    assert speaker.told == [(1.0, False)]
    assert bench.voice.spoken == [MODEL_BROKE_OFF]


@pytest.mark.asyncio
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


@pytest.mark.asyncio
async def test_one_that_is_given_up_is_not_asked() -> None:
    """If speech-to-speech has been given up, the responder answers and the model is not asked."""
    speaker = Speaker("One")
    speaker.usable = False
    bench = _bench(speaker)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        reply = await bench.next_reply()
    assert reply.text == "Otherwise."
    assert speaker.told == []


@pytest.mark.asyncio
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


@pytest.mark.asyncio
async def test_an_answer_without_any_sound_is_given_the_other_way() -> None:
    """If the model says nothing to somebody who asked, the responder answers."""
    speaker = Speaker()
    bench = _bench(speaker)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(FIRST)
        reply = await bench.next_reply()
    assert (reply.text, reply.skipped, reply.failure) == ("Otherwise.", False, None)
    assert speaker.told == [(0.0, False)]


@pytest.mark.asyncio
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


@pytest.mark.asyncio
async def test_it_may_find_that_there_is_nothing_to_say() -> None:
    """If a reply may be skipped and the model says nothing, nothing sounds and the responder is not asked."""
    speaker = Speaker()
    bench = _bench(speaker)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(replace(FIRST, may_skip=True))
        reply = await bench.next_reply()
    assert (reply.text, reply.skipped, reply.failure) == ("", True, None)


@pytest.mark.asyncio
@pytest.mark.parametrize(("asker_id", "text"), [("", ""), ("1", "Otherwise."), (None, "Otherwise.")])
async def test_a_thought_of_its_own_that_fails_is_let_be(asker_id: str | None, text: str) -> None:
    """If a remark that nobody asked for fails, it is skipped. A person who asked gets the responder's answer."""
    speaker = Speaker(RealtimeError("It is away."))
    bench = _bench(speaker)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(replace(FIRST, asker_id=asker_id, may_skip=True))
        reply = await bench.next_reply()
    assert (reply.text, reply.skipped, reply.failure) == (text, not text, None)


@pytest.mark.asyncio
async def test_what_it_is_about_may_end_before_it_sounds() -> None:
    """The model is told that nothing of it was heard, and the responder is not asked instead."""
    speaker = Speaker("One", "two")
    bench = _bench(speaker)
    async with bench.running():
        bench.replier.ask(replace(FIRST, asker_id="", may_skip=True, is_current=lambda: False))
        reply = await bench.next_reply()
        bench.listener.pull(100)
    assert (reply.text, reply.skipped, reply.failure, bench.voice.spoken) == ("", True, None, [])
    assert speaker.told == [(0.0, False)]
    assert bench.listener.frames == 0


@pytest.mark.asyncio
async def test_a_remark_that_breaks_off_before_its_first_sound_is_stopped_and_not_told() -> None:
    """The model is told that nothing of it was heard, so it says no more of it. Nobody waits for an apology."""
    speaker = Speaker(asyncio.CancelledError())
    bench = _bench(speaker)
    async with bench.listener.listening(), bench.running():
        bench.replier.ask(replace(FIRST, asker_id="", may_skip=True))
        reply = await bench.next_reply()
    assert (reply.text, reply.failure, reply.skipped, speaker.told) == ("", None, True, [(0.0, False)])
