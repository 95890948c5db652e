"""A sentence starts to play while the rest of it is still synthesised."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest_asyncio

from bot.brain.reply import Lapse, Reply
from bot.brain.speech_output import NOT_PLAYED, PLAYBACK_SLACK_S, SpeechOutput, SpeechRules
from bot.words import SESSION, Words
from rehearsal.roomtone.evenings.virtual_time import run_virtually
from tests.bot.brain.replying import FIRST
from tests.fakes.brain import FakeVoice, Listener, until
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import FakeRoomChannel
from voice.speaking.playback import CUSHION_FRAMES, Playback

SENTENCE = "one two three four five six seven eight."


class OutputBench:
    """Speech output with a fake voice, and the reply that it speaks."""

    def __init__(self) -> None:
        self.voice = FakeVoice()
        self.voice.frames_a_word = 16
        self.playback = Playback()
        self.listener = Listener(self.playback)
        self.reply = Reply(FIRST, 0.0, Words().lease({SESSION}, since=None))
        self.reply.ask(FIRST)
        self.speaking = SpeechOutput(self.playback, FakeClock(), SpeechRules(FakeRoomChannel(), self.voice))

    async def speak(self, *sentences: str) -> None:
        """Speak the given sentences to the end."""

        async def answer() -> AsyncGenerator[str, None]:
            for sentence in sentences:
                yield sentence

        await self.speaking.speak(answer(), self.reply)


@pytest_asyncio.fixture
async def bench() -> OutputBench:
    """An output that says nothing."""
    return OutputBench()


async def test_a_sentence_sounds_before_its_end_is_made(bench: OutputBench) -> None:
    """The first words of a sentence play while the voice still synthesises the rest, and in the end all of
    it is heard.
    """
    rest = bench.voice.waits[SENTENCE, 2] = asyncio.Event()
    speaking = asyncio.create_task(bench.speak(SENTENCE), name="speaking")
    await until(lambda: len(bench.reply.pieces) == 1)
    bench.listener.pull(CUSHION_FRAMES)
    assert bench.listener.frames == CUSHION_FRAMES
    rest.set()
    await speaking
    bench.listener.pull(8 * 16)
    await bench.speaking.wait_until_played(bench.reply)
    assert [(played.heard_text, played.complete) for played in bench.reply.played()] == [(SENTENCE, True)]


async def test_stopped_while_it_is_made_it_counts_as_far_as_it_was_heard(bench: OutputBench) -> None:
    """A sentence stopped during synthesis has no known length, so its heard part is estimated from the voice's usual
    pace.
    """
    bench.voice.waits[SENTENCE, 5] = asyncio.Event()
    speaking = asyncio.create_task(bench.speak(SENTENCE), name="speaking")
    await until(lambda: len(bench.reply.pieces) == 1)
    bench.listener.pull(4 * 16)
    speaking.cancel()
    bench.playback.stop()
    (played,) = bench.reply.played()
    assert not played.complete
    assert played.heard_text == "one two three"


async def test_what_broke_off_is_written_and_remembered_as_far_as_it_came(bench: OutputBench) -> None:
    """If the voice fails after five words, these are recorded as heard and the other three are written."""
    bench.voice.breaks = {(SENTENCE, 5)}
    await bench.speak(SENTENCE, "Nine.")
    bench.listener.pull(8 * 16)
    await bench.speaking.wait_until_played(bench.reply)
    assert bench.reply.unsaid == "six seven eight."
    assert [played.heard_text for played in bench.reply.played()] == ["one two three four five", "Nine."]
    assert bench.reply.failure == "The voice broke. Give it tea."


async def test_a_sentence_without_any_sound_takes_no_place(bench: OutputBench) -> None:
    """A sentence without any sound is written and does not count as speaking."""
    bench.voice.mute = {SENTENCE}
    await bench.speak(SENTENCE)
    assert (bench.reply.pieces, bench.reply.unsaid, bench.playback.speaking) == ([], SENTENCE, False)


async def test_a_sentence_that_the_voice_cannot_read_is_written_and_the_voice_counts_as_working(
    bench: OutputBench,
) -> None:
    """The sentence is written with the reason, and the others are spoken: nobody is told that the bot is mute."""
    bench.voice.unreadable = {"кот."}
    await bench.speak("кот.", SENTENCE)
    bench.listener.pull(8 * 16)
    await bench.speaking.wait_until_played(bench.reply)
    assert (bench.reply.unsaid, bench.reply.failure) == ("кот.", "The voice has no glasses.")
    assert [played.heard_text for played in bench.reply.played()] == [SENTENCE]
    assert bench.reply.lapse is Lapse.NONE


def test_an_answer_that_people_laugh_over_is_waited_for() -> None:
    """Pauses for laughter do not count as a dead connection, even if together they are longer than its time limit."""

    async def main() -> None:
        bench = OutputBench()
        await bench.speak(SENTENCE)
        playing = asyncio.create_task(bench.speaking.wait_until_played(bench.reply), name="play-out")
        for pause_s in (5.0, 6.0, 2.5 * PLAYBACK_SLACK_S):
            bench.listener.pull(10)
            bench.playback.pause()
            await asyncio.sleep(pause_s)
            bench.playback.resume()
        bench.listener.pull(8 * 16)
        await playing
        assert bench.reply.failure is None
        assert [played.complete for played in bench.reply.played()] == [True]

    run_virtually(main())


def test_a_connection_that_takes_no_more_sound_is_given_up() -> None:
    """A connection that takes no more frames is given up after the time limit, also in mid-answer and after a pause."""

    async def main() -> None:
        bench = OutputBench()
        await bench.speak(SENTENCE)
        playing = asyncio.create_task(bench.speaking.wait_until_played(bench.reply), name="play-out")
        await asyncio.sleep(0)
        bench.listener.pull(10)
        bench.playback.pause()
        await asyncio.sleep(PLAYBACK_SLACK_S / 2)
        bench.playback.resume()
        await asyncio.sleep(PLAYBACK_SLACK_S)
        assert not playing.done()
        await asyncio.sleep(PLAYBACK_SLACK_S)
        assert playing.done()
        assert bench.reply.failure == NOT_PLAYED

    run_virtually(main())
