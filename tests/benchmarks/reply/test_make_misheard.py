"""Finding how the recogniser wrote the bot's name. The rest of the script needs voices that are not bundled."""

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
    """The name is the text between the other words, if all other words were understood."""
    assert name_in(text, sentence) == name


def test_the_parts_share_neither_voices_nor_sentences() -> None:
    """The held-out set shares no voice and no sentence with the tuning set."""
    assert not set(VOICES[DialogueSet.TUNING]) & set(VOICES[DialogueSet.HELD_OUT])
    assert not set(SENTENCES[DialogueSet.TUNING]) & set(SENTENCES[DialogueSet.HELD_OUT])
