"""Being told to be silent, or to talk again: those words, and no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.hushing import asks_for_silence, asks_to_talk


@pytest.mark.parametrize(
    "text",
    [
        "Shut up.", "shut up!", "Be quiet.", "be quiet please", "Please be quiet for a while.", "Stop.",
        "Stop talking!", "Oh, just shut up now.", "Could you be quiet for a moment?", "Quiet, please.", "Stop it.",
        "Hush.", "Shh.",
        "Would you please stop talking for a bit?", "Okay, stop.", "Please stay silent tonight.", "Mute yourself.",
        "Don’t talk.", "Stop, stop, stop!", "Be silent.",
    ],
)  # fmt: skip
def test_these_ask_for_silence(text: str) -> None:
    """However politely."""
    assert asks_for_silence(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "...", "When does the music stop?", "Stop at the next station.", "The quiet one, please.", "Who told you?",
        "We stop at noon.", "Please stop the music.", "Shut up the shop at nine.", "Be quiet about the party, Ben.",
        "Is it quiet there?", "Don't stop.", "Tell me about silence.", "Wait.", "Hold on.", "How do I mute the TV?",
        "Stop laughing at me.", "I said be quiet to the dog.",
    ],
)  # fmt: skip
def test_these_do_not(text: str) -> None:
    """They are about something else, or only break in."""
    assert not asks_for_silence(text)


@pytest.mark.parametrize(
    ("text", "lifts"),
    [
        ("You can talk again.", True),
        ("You may speak now.", True),
        ("Please speak up again.", True),
        ("Unmute yourself.", True),
        ("Come back!", True),
        ("You talk too much.", False),
        ("Talk about the weather.", False),
        ("Can we talk later?", False),
        ("", False),
    ],
)
def test_it_may_be_told_to_talk_again(text: str, lifts: bool) -> None:
    """By words that mean only that."""
    assert asks_to_talk(text) is lifts


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    """And asks for one of the two at most."""
    assert not (asks_for_silence(text) and asks_to_talk(text))
