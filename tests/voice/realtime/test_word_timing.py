"""Which words belong to how much sound."""

from __future__ import annotations

import pytest

from voice.realtime.word_timing import words_heard


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
