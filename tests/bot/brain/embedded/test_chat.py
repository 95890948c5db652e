"""Replies of the embedded responder, used when no language model is configured."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.brain.embedded.chat import NO_MODEL, answer
from bot.brain.embedded.evidence import Evidence, EvidenceOrigin
from bot.texts.text import in_language

NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC).timestamp()
SUMMARISED_FROM, SUMMARISED_TO = NOW - 58 * 60, NOW - 52 * 60
MEMORY = [
    Evidence(
        "The vault code is four seven one nine.", EvidenceOrigin.SUMMARY, 0, "Ada", SUMMARISED_FROM, SUMMARISED_TO
    ),
    Evidence("The group plans a trip to Lisbon.", EvidenceOrigin.SUMMARY, 1, None, SUMMARISED_FROM, SUMMARISED_TO),
    Evidence("I am afraid of spiders and heights.", EvidenceOrigin.TURN, 2, "Cy", NOW - 41 * 60, NOW - 41 * 60),
    Evidence("James is sharing Marvel Rivals on the Tokyo map.", EvidenceOrigin.NOTE, 3, None, NOW - 300, NOW - 300),
]

KEY = "Der Schlüssel liegt unter dem Blumentopf."


def ask(question: str, *, introduce: bool = False) -> str:
    """Return the bot's answer to a question from Bo."""
    return answer(question, MEMORY, asker="Bo", now=NOW, names=("Roomtone", "Room tone"), zone=UTC, introduce=introduce)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "Roomtone, what is the vault code?",
            "Earlier this evening, between 19:02 and 19:08, Ada said: The vault code is four seven one nine.",
        ),
        (
            "Where is the trip going?",
            "Earlier this evening, between 19:02 and 19:08: The group plans a trip to Lisbon.",
        ),
        (
            "Roomtone, who is afraid of spiders?",
            "About 40 minutes ago, Cy said: I am afraid of spiders and heights.",
        ),
        (
            "What is James sharing?",
            "On a screen about 5 minutes ago: James is sharing Marvel Rivals on the Tokyo map.",
        ),
        ("What is the capital of Peru?", "I have heard nothing about that here, Bo."),
        ("Hello Roomtone!", "Hello, Bo."),
        ("Thanks, Roomtone.", "You are welcome, Bo."),
        ("Good night, Roomtone.", "Goodbye, Bo."),
        ("Roomtone?", "I am here, Bo. Ask me about what was said."),
        ("I painted the fence green.", "I heard you, Bo. I can tell you what was said here, if you ask me."),
    ],
)
def test_answers_come_from_memory_with_who_and_when(question: str, said: str) -> None:
    """An answer quotes the matching sentence with its speaker and time, or says that nothing was heard about the
    question.
    """
    assert ask(question) == said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "Roomtone, wann beginnt das Konzert?",
            "Heute Abend zwischen 19:02 und 19:08 sagte Ada: Das Konzert beginnt um acht.",
        ),
        (
            "Roomtone, wo ist der Schlüssel?",
            f"Vor etwa 40 Minuten sagte Cy: {KEY}",
        ),
        ("Was ist die Hauptstadt von Peru?", "Dazu wurde hier nichts gesagt, Bo."),
        ("Hallo Roomtone!", "Hallo, Bo."),
        ("Danke, Roomtone.", "Gern, Bo."),
        ("Tschüss, Roomtone.", "Tschüss, Bo."),
    ],
)
def test_a_german_question_is_answered_in_german(question: str, said: str) -> None:
    """What is not quoted is in the language of the question."""
    memory = [replace(MEMORY[0], text="Das Konzert beginnt um acht."), replace(MEMORY[2], text=KEY)]
    answered = answer(question, memory, asker="Bo", now=NOW, names=("Roomtone",), zone=UTC, introduce=True)
    assert answered == f"{said} {in_language(NO_MODEL, 'de')}"


@pytest.mark.parametrize(
    ("question", "language", "german"),
    [
        ("Roomtone, quel est le prix du billet ?", "fr", False),
        ("Roomtone, ¿qué hora es?", "es", False),
        ("Roomtone, Ladezeit Lissabon?", "de", True),
        ("Roomtone, Ladezeit Lissabon?", "", False),
    ],
)
def test_a_known_language_counts_more_than_the_words(question: str, language: str, german: bool) -> None:
    """French has a 'du' and Spanish an 'es'. Who speaks no language that the bot has is answered in English."""
    answered = answer(question, [], asker="Bo", now=NOW, names=("Roomtone",), introduce=True, language=language)
    assert answered.endswith(in_language(NO_MODEL, "de" if german else "en"))


def test_it_says_once_that_no_model_is_configured() -> None:
    """With `introduce`, an answer ends with the notice that no language model is configured."""
    assert ask("Hello!", introduce=True) == f"Hello, Bo. {NO_MODEL}"


@pytest.mark.parametrize(
    "question",
    ["Roomtone, what did I miss?", "Can you give me a short summary?", "Recap, please.", "What was discussed so far?"],
)
def test_a_recap_is_a_few_sentences_from_earlier_and_from_lately(question: str) -> None:
    """A request for a recap is answered with a few quotes, older ones first, each with its speaker and time."""
    assert ask(question) == (
        "Earlier this evening, between 19:02 and 19:08, Ada said: The vault code is four seven one nine. "
        "Earlier this evening, between 19:02 and 19:08: The group plans a trip to Lisbon. "
        "About 40 minutes ago, Cy said: I am afraid of spiders and heights."
    )
    empty = answer(question, [], asker="Bo", now=NOW, names=("Roomtone",))
    assert empty == "Nothing much was said yet, Bo."


def test_a_very_long_quote_is_cut_at_a_word() -> None:
    """A very long quote is cut after a whole word, because it is read aloud."""
    long = Evidence("The vault " + "really " * 100, EvidenceOrigin.TURN, 9, "Cy", NOW - 60, NOW - 60)
    said = answer("What about the vault?", [long], asker="Bo", now=NOW, names=())
    assert said.startswith("About a minute ago, Cy said: The vault really")
    assert said.endswith("really …")
    assert len(said) < 320
