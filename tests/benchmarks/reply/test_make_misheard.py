"""Finding what was written where the name was said; the rest needs voices that are brought for the purpose."""

from __future__ import annotations

import pytest

from benchmarks.reply.dialogues import DialogueSet
from benchmarks.reply.make_misheard import SENTENCES, VOICES, name_in


@pytest.mark.parametrize(
    ("text", "sentence", "name"),
    [
        ("Room tone, what time is it?", "Roomtone, what time is it?", "Room tone"),
        ("Hey, Rumtone. Who is coming tonight?", "Hey Roomtone, who is coming tonight?", "Rumtone"),
        ("What do you think, Roomtown?", "What do you think, Roomtone?", "Roomtown"),
        ("What time is it?", "Roomtone, what time is it?", ""),
        ("Room tone, what dime is it?", "Roomtone, what time is it?", ""),
    ],
)
def test_the_name_is_what_stands_between_the_other_words(text: str, sentence: str, name: str) -> None:
    """Only where all other words were understood."""
    assert name_in(text, sentence) == name


def test_the_parts_share_neither_voices_nor_sentences() -> None:
    """What is held out was never heard in tuning."""
    assert not set(VOICES[DialogueSet.TUNING]) & set(VOICES[DialogueSet.HELD_OUT])
    assert not set(SENTENCES[DialogueSet.TUNING]) & set(SENTENCES[DialogueSet.HELD_OUT])
