"""The forms in which people ask for a reminder, without a model."""

from __future__ import annotations

import pytest

from bot.brain.first_sentences import reminder_in


@pytest.mark.parametrize(
    ("said", "at", "what"),
    [
        ("remind us in ten minutes to take the pizza out.", "ten minutes", "take the pizza out"),
        ("Can you remind me in 5 minutes about the oven?", "5 minutes", "the oven"),
        ("remind me to put it in the oven in half an hour", "half an hour", "put it in the oven"),
        ("remind me in ten minutes.", "ten minutes", None),
        ("please remind me at 21:30 to call Anna", "21:30", "call Anna"),
        ("set a timer for 3 minutes", "3 minutes", None),
        ("remind me in a bit to call", "a bit", "call"),
        ("Erinnere uns in zehn Minuten daran, die Pizza rauszuholen.", "zehn Minuten", "die Pizza rauszuholen"),
        ("Erinner mich in 5 Minuten an den Tee.", "5 Minuten", "den Tee"),
        ("Stell einen Timer auf drei Minuten.", "drei Minuten", None),
    ],
)
def test_a_reminder_is_asked_for_in_a_plain_form(said: str, at: str, what: str | None) -> None:
    """With its time as it was said, and what it is about, if they say that."""
    assert reminder_in(said) == {"at": at} | ({} if what is None else {"what": what})


@pytest.mark.parametrize(
    "said", ["", "remind me", "That reminds me of Lisbon.", "remind me soon", "Erinnerst du dich?"]
)
def test_other_words_ask_for_none(said: str) -> None:
    """Also those that only have the word in them."""
    assert reminder_in(said) is None
