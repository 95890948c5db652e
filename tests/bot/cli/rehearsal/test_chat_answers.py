"""The answers of the local chat server come only from the messages it is sent."""

from __future__ import annotations

from bot.cli.rehearsal.chat_model import answer_messages

NAMES = ("Roomtone",)


def test_it_answers_from_the_turns_it_is_sent() -> None:
    """The server quotes a turn with its speaker, and never the question itself."""
    messages = [
        {"role": "system", "content": "You are Roomtone."},
        {"role": "user", "content": "[21:04] Ada: I bought a green bicycle at the market.\nBen: And I a lamp."},
        {"role": "assistant", "content": "[21:05] Roomtone: Nice."},
        {"role": "user", "content": "[21:06] Ben: Roomtone, which bicycle did Ada buy?"},
    ]
    said = answer_messages(messages, names=NAMES)
    assert "Ada said: I bought a green bicycle at the market." in said


def test_it_answers_from_the_summary() -> None:
    """The server quotes the summary without the line that says which turns it covers."""
    messages = [
        {
            "role": "system",
            "content": "Earlier in this session: The picnic is at the lake.\n(turns 0 to 9, said 20:00)",
        },
        {"role": "user", "content": "[21:06] Ben: Where is the picnic?"},
    ]
    said = answer_messages(messages, names=NAMES)
    assert "The picnic is at the lake." in said
    assert "turns" not in said


def test_it_knows_nothing_else() -> None:
    """The server says so if the messages contain no answer. A message without the transcript's form counts as a
    question.
    """
    assert "nothing about that" in answer_messages([{"role": "user", "content": "Who won the match?"}], names=NAMES)
    assert answer_messages([], names=NAMES) == "Nobody has said anything yet."
