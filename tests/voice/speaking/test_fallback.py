"""A second synthesizer says what the first one has not said when it fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.brain import FakeVoice
from voice.audio import DISCORD_FRAME_SAMPLES
from voice.errors import SynthesisError, UnreadableTextError
from voice.speaking.fallback import FallbackSynthesizer
from voice.speaking.port import synthesize_all
from voice.speaking.speech_rate import CHARS_A_SECOND, SpeechRate, words_after, words_until

# Frames for each word, at a speaker's pace.
FRAMES = 16


class VoiceBench:
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
    bench = VoiceBench()
    bench.first.unreadable = {"кот"}
    for _ in range(3):
        assert await bench.say("кот", fails=False) == "second"
    assert bench.voice.outage is None
    assert await bench.say("cat", fails=False) == "first"
    bench.second.unreadable = {"кот"}
    with pytest.raises(UnreadableTextError, match="no glasses"):
        await synthesize_all(bench.voice, "кот")
    bench.second.unreadable, bench.second.mute = set(), {"кот"}
    with pytest.raises(SynthesisError, match=r"glasses.*hoarse"):
        await synthesize_all(bench.voice, "кот")


async def test_when_both_fail_both_say_why() -> None:
    """The error names the causes of both failures, also while the first is skipped. Identical causes are named once."""
    bench = VoiceBench()
    bench.second.mute = {"x"}
    bench.first.breaks = {("x", 0)}
    for _ in range(3):
        with pytest.raises(SynthesisError, match=r"broke.*hoarse"):
            await synthesize_all(bench.voice, "x")
    bench.first.mute = {"x"}
    bench.now += 61.0
    with pytest.raises(SynthesisError, match=r"^The voice is hoarse"):
        await synthesize_all(bench.voice, "x")
    outage = bench.voice.outage
    assert outage is not None
    assert (outage.since, outage.retry_at, str(outage.problem)) == (100.0, 221.0, "The voice is hoarse. Give it tea.")


async def test_the_second_says_the_rest_of_what_the_first_began() -> None:
    """Once the pace is known, no word is lost or repeated. If the second fails too, the error says how much was
    spoken, so that the rest can be written.
    """
    bench = VoiceBench()
    bench.first.frames_a_word = bench.second.frames_a_word = FRAMES
    sentence = "one two three four five six seven eight"
    for _ in range(30):
        await synthesize_all(bench.voice, sentence)
    bench.first.breaks = {(sentence, 5)}
    speech = await synthesize_all(bench.voice, sentence)
    assert bench.second.spoken == ["six seven eight"]
    assert len(speech.pcm) == 8 * FRAMES * DISCORD_FRAME_SAMPLES
    bench.first.breaks = {(sentence, 4)}
    bench.second.mute = {"five six seven eight"}
    with pytest.raises(SynthesisError) as caught:
        await synthesize_all(bench.voice, sentence)
    assert caught.value.spoken_share == pytest.approx(0.5, abs=0.05)


def test_a_pace_is_learned_from_what_was_said() -> None:
    """The pace of a voice, ten characters a second, is learned from some sentences, and clicks are ignored."""
    rate = SpeechRate()
    assert rate.duration_s("x" * 30) == pytest.approx(30 / CHARS_A_SECOND)
    for _ in range(20):
        rate.learn("x" * 40, 4.0)
        rate.learn("x" * 40, 0.1)
    assert rate.duration_s("x" * 40) == pytest.approx(4.0, abs=0.1)
    assert rate.spoken_share("x" * 40, 1.0) == pytest.approx(0.25, abs=0.02)
    assert rate.spoken_share("x" * 40, 60.0) == 1.0


@given(st.text() | st.text("今日は天気がとても。 the ไทย"), st.floats(0, 1))
def test_what_was_said_and_what_was_not_are_the_whole(text: str, share: float) -> None:
    both = words_until(text, share) + words_after(text, share)
    assert "".join(both.split()) == "".join(text.split())


@given(st.text("one two,.", min_size=1), st.floats(0, 1))
def test_no_word_is_split_in_scripts_with_spaces(text: str, share: float) -> None:
    assert [*words_until(text, share).split(), *words_after(text, share).split()] == text.split()


def test_a_word_that_was_begun_is_said_again() -> None:
    assert words_after("one two three four", 0.6) == "three four"
    assert words_until("one two three four", 1.0) == "one two three four"


@pytest.mark.parametrize(
    ("text", "said", "not_said"),
    [
        ("今日は天気がとてもいいですね。", "今日は天気が", "とてもいいですね。"),
        ("我们明天早上九点见面吧。", "我们明天早上", "九点见面吧。"),
        ("วันนี้อากาศดีมาก", "วันนี้อาก", "าศดีมาก"),
    ],
)
def test_an_answer_without_spaces_is_remembered_up_to_where_it_broke_off(text: str, said: str, not_said: str) -> None:
    """Half of it was spoken. In these scripts the whole sentence would be one word for its spaces."""
    assert words_until(text, 0.5) == said
    assert words_after(text, 0.5) == not_said
