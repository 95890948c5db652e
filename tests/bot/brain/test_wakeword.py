"""Calling the bot by its name: what counts, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.brain.wakeword import is_addressed, without_call

NAMES = ("Roomtone", "Room tone")


@pytest.mark.parametrize(
    "text",
    [
        "Roomtone, what did Bo say?",
        "what do you think, room tone?",
        "ROOMTONE!",
        "Hey, Room-Tone.",
        "Rumtone, who brings the lantern?",
        "Rome tone, are you there?",
        "Room town, are you there?",
        "Roomtone's opinion?",
        "Roomstone, hello.",
        "Room Tom... Roomtome, hello.",
        "Hey rim tone.",
    ],
)
def test_the_name_and_its_mishearings_address_the_bot(text: str) -> None:
    """However the recogniser spells it, who calls is heard."""
    assert is_addressed(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "There is no room for two.",
        "Room one is free.",
        "The tone of the room was odd.",
        "I like the ringtone.",
        "He took the microphone.",
        "Romantic, isn't it?",
        "Rome was not built in a day.",
        "Remember the tone we agreed on.",
    ],
)
def test_other_words_do_not(text: str) -> None:
    """Words that merely look alike leave the bot silent."""
    assert not is_addressed(text, NAMES)


def test_a_short_name_must_be_said_exactly() -> None:
    """A name of three letters has no mis-hearings: they are other people's names."""
    assert is_addressed("Ada, hello", ("Ada",))
    assert not is_addressed("Ida, hello", ("Ada",))


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_a_name_is_heard_wherever_it_stands(before: str, after: str) -> None:
    """Whatever is said around the name, it is heard."""
    assert is_addressed(f"{before} Roomtone, {after}", NAMES)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Roomtone, who brings the lantern?", "who brings the lantern?"),
        ("Hey room tone who brings it", "who brings it"),
        ("Rumtone. Who brings it?", "Who brings it?"),
        ("Who brings it, Roomtone?", "Who brings it, Roomtone?"),
        ("Tell Roomtone about it.", "Tell Roomtone about it."),
        ("Roomtone", ""),
        ("", ""),
    ],
)
def test_a_call_in_front_is_not_what_is_said(text: str, rest: str) -> None:
    """Only the name at the beginning is a call."""
    assert without_call(text, NAMES) == rest
