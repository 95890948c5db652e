"""Estimating how long a text takes to speak, and which part of the text a part of its audio covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.speaking.speech_rate import CHARS_A_SECOND, SpeechRate, words_after, words_until


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
