"""A second synthesizer speaks when the first one fails."""

from __future__ import annotations

import pytest

from tests.fakes.brain import FakeVoice
from voice.audio import DISCORD_FRAME_SAMPLES
from voice.errors import SynthesisError, UnreadableTextError
from voice.speaking.fallback import FallbackSynthesizer
from voice.speaking.port import synthesize_all

# Frames for each word, at a speaker's pace.
FRAMES = 16


class Bench:
    """A fallback synthesizer with two voices, and a clock that the test moves."""

    def __init__(self) -> None:
        self.first, self.second = FakeVoice(), FakeVoice()
        self.now = 100.0
        self.voice = FallbackSynthesizer(self.first, self.second, monotonic=lambda: self.now)

    async def say(self, text: str, *, fails: bool) -> str:
        """Speak the text and return which voice spoke it."""
        self.first.mute = {text} if fails else set()
        before = len(self.first.spoken)
        assert (await synthesize_all(self.voice, text)).text == text
        return "first" if len(self.first.spoken) > before else "second"


async def test_a_text_that_the_first_cannot_read_is_no_failure() -> None:
    """The second says it, and the first stays in use, however often; one that neither can read is told as that."""
    bench = Bench()
    bench.first.unreadable = {"кот"}
    for _ in range(3):
        assert await bench.say("кот", fails=False) == "second"
    assert bench.voice.outage is None
    assert await bench.say("cat", fails=False) == "first"
    bench.second.unreadable = {"кот"}
    with pytest.raises(UnreadableTextError, match="no glasses"):
        await synthesize_all(bench.voice, "кот")
    bench.second.unreadable, bench.second.mute = set(), {"кот"}
    with pytest.raises(SynthesisError, match=r"^The voice has no glasses\. The voice is hoarse\. Give it tea\.$"):
        await synthesize_all(bench.voice, "кот")


async def test_when_both_fail_both_say_why() -> None:
    """The error names the causes of both failures, also while the first is skipped. Identical causes are named once."""
    bench = Bench()
    bench.second.mute = {"x"}
    bench.first.breaks = {("x", 0)}
    for _ in range(3):
        with pytest.raises(
            SynthesisError, match=r"^The voice broke\. Give it tea\. The voice is hoarse\. Give it tea\.$"
        ):
            await synthesize_all(bench.voice, "x")
    bench.first.mute = {"x"}
    bench.now += 61.0
    with pytest.raises(SynthesisError, match=r"^The voice is hoarse\. Give it tea\.$"):
        await synthesize_all(bench.voice, "x")
    outage = bench.voice.outage
    assert outage is not None
    assert (outage.since, outage.retry_at, str(outage.problem)) == (100.0, 221.0, "The voice is hoarse. Give it tea.")


async def test_the_second_says_the_rest_of_what_the_first_began() -> None:
    """If the first voice breaks off, the second speaks the rest. Once the pace is known, no word is lost or
    repeated.
    """
    bench = Bench()
    bench.first.frames_a_word = bench.second.frames_a_word = FRAMES
    sentence = "one two three four five six seven eight"
    for _ in range(30):
        await synthesize_all(bench.voice, sentence)
    bench.first.breaks = {(sentence, 5)}
    speech = await synthesize_all(bench.voice, sentence)
    assert bench.second.spoken == ["six seven eight"]
    assert len(speech.pcm) == 8 * FRAMES * DISCORD_FRAME_SAMPLES


async def test_when_both_fail_it_is_known_how_much_was_said() -> None:
    """If both fail, the error says how much was spoken, so that the rest can be written."""
    bench = Bench()
    bench.first.frames_a_word = bench.second.frames_a_word = FRAMES
    sentence = "one two three four five six seven eight"
    for _ in range(30):
        await synthesize_all(bench.voice, sentence)
    bench.first.breaks = {(sentence, 4)}
    bench.second.mute = {"five six seven eight"}
    with pytest.raises(SynthesisError) as caught:
        await synthesize_all(bench.voice, sentence)
    assert caught.value.spoken_share == pytest.approx(0.5, abs=0.05)
