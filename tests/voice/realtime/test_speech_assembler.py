"""A spoken reply on its way to playback."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ, Pcm
from voice.realtime.active_reply import WORDS_A_SECOND, words_heard
from voice.realtime.port import ReplyPiece
from voice.realtime.speech_assembler import SpeechAssembler
from voice.speaking.playback import joined_texts


def _sound(seconds: float) -> Pcm:
    return np.full(round(24_000 * seconds), 500, np.int16)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 1.5), st.text("ab c今天，", max_size=30)), max_size=12))
def test_no_word_and_no_sound_is_lost(pieces: list[tuple[float, str]]) -> None:
    """All words come out in order, and all sound comes out in whole frames, except for the last part."""
    stream = SpeechAssembler()
    spoken = [stream.feed(ReplyPiece("item", _sound(seconds), words)) for seconds, words in pieces]
    made = [each for each in spoken if each is not None]
    assert all(len(each.pcm) % DISCORD_FRAME_SAMPLES == 0 for each in made)
    end = stream.end()
    made += [end] if end is not None else []
    assert joined_texts((each.text, each.glued) for each in made) == " ".join("".join(w for _, w in pieces).split())
    length = sum(len(each.pcm) for each in made) / DISCORD_RATE_HZ
    assert length == pytest.approx(sum(len(_sound(seconds)) for seconds, _ in pieces) / 24_000, abs=0.03)


@pytest.fixture
def stream() -> SpeechAssembler:
    """A stream of nothing."""
    return SpeechAssembler()


def test_words_are_dealt_out_at_a_speakers_pace(stream: SpeechAssembler) -> None:
    """Words that come all at once are handed out at a speaker's pace: two seconds of sound get about six words."""
    speech = stream.feed(ReplyPiece("item", _sound(2.0), "one two three four five six seven eight nine ten"))
    assert speech is not None
    assert len(speech.text.split()) == pytest.approx(2.0 * WORDS_A_SECOND, abs=1)


def test_scripts_without_spaces_are_dealt_out_at_a_speakers_pace(stream: SpeechAssembler) -> None:
    """Two signs count as one word, a piece that goes on without a space is glued to the one before, and words that may
    not be said are found in all of the text.
    """
    made = [stream.feed(ReplyPiece("item", None, "今天天气很好，我们"))]
    made += [stream.feed(ReplyPiece("item", _sound(0.75), words)) for words in ("一起去", "公园 散步吧。")]
    assert stream.words == "今天天气很好，我们一起去公园 散步吧。"
    made.append(stream.end())
    told = [(each.text, each.glued) for each in made if each is not None]
    assert told == [("今天天气", False), ("很好，我们", True), ("一起去公园 散步吧。", True)]


def test_a_word_may_come_in_halves_but_not_over_items(stream: SpeechAssembler) -> None:
    """A word may be split over parts of one item, but another item begins another word."""
    stream.feed(ReplyPiece("one", None, "Hel"))
    stream.feed(ReplyPiece("one", None, "lo"))
    stream.feed(ReplyPiece("two", None, "there"))
    end = stream.end()
    assert end is not None
    assert end.text == "Hello there"


def test_words_that_lost_their_sound_are_not_said(stream: SpeechAssembler) -> None:
    """After a lost connection only the words of the sound that came are kept, and each is said once."""
    made = [stream.feed(ReplyPiece("one", _sound(1.0), "Well, I think we shou"))]
    stream.resume("Well, I think")
    made += [stream.feed(ReplyPiece("two", _sound(1.0), "we should go.")), stream.end()]
    assert " ".join(each.text for each in made if each is not None and each.text) == "Well, I think we should go."


@pytest.mark.parametrize(
    ("text", "sound_s", "heard"),
    [
        ("", 1.0, ""),
        ("Well, I think", 0.0, ""),
        ("Well,  I\nthink that we should go.", 1.0, "Well, I think"),
        ("Well, I think", 9.0, "Well, I think"),
        ("今天天气很好，我们一起去公园散步吧。", 0.2, "今天"),
        ("今天天气很好，我们一起去公园散步吧。", 1.0, "今天天气很好，"),
        ("今天天气很好，我们一起去公园散步吧。", 9.0, "今天天气很好，我们一起去公园散步吧。"),
        ("สวัสดีครับ", 1.0, "สวัสดีครั"),
        ("我用 Python 写程序", 1.0, "我用 Python 写程"),
    ],
)
def test_words_are_heard_at_a_speakers_pace(text: str, sound_s: float, heard: str) -> None:
    """A second of sound has about three words. In scripts without spaces two signs count as one."""
    assert words_heard(text, sound_s) == heard
