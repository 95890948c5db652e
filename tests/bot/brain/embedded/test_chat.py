"""Replies of the embedded responder, used when no language model is configured."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.brain.embedded.chat import ADD_MODEL, MODEL_AWAY, MOST_NAMED, NO_MODEL, NOT_UNDERSTOOD, Known, answer
from bot.brain.embedded.evidence import Evidence
from bot.texts.text import Text, catalogue, in_language
from compaction.payload import PartKind

NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC).timestamp()
SUMMARISED_FROM, SUMMARISED_TO = NOW - 58 * 60, NOW - 52 * 60
MEMORY = [
    Evidence("The vault code is four seven one nine.", PartKind.SUMMARY, "Ada", SUMMARISED_FROM, SUMMARISED_TO),
    Evidence("The group plans a trip to Lisbon.", PartKind.SUMMARY, None, SUMMARISED_FROM, SUMMARISED_TO),
    Evidence("I am afraid of spiders and heights.", PartKind.TURN, "Cy", NOW - 41 * 60, NOW - 41 * 60),
    Evidence("James is sharing Marvel Rivals on the Tokyo map.", PartKind.NOTE, None, NOW - 300, NOW - 300),
]

NOTHING = "I have heard nothing about that here, Bo, or I did not understand you. Type /help to see what I can do."
KEY = "Der Schlüssel liegt unter dem Blumentopf."
MEANINGS = catalogue("en").meanings
NAMES = ("Roomtone", "Room tone")
KNOWN = Known(MEMORY, NOW, NAMES, UTC, ("Ada", "Bo", "Cy"), NOW - 3_600)


def ask(question: str, *, why: Text | None = None, meaning: str | None = None) -> str:
    """Return the bot's answer to a question from Bo."""
    return answer(question, KNOWN, meaning=meaning, asker="Bo", why=why)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "Roomtone, what is the vault code?",
            "Ada said: The vault code is four seven one nine. That was earlier this evening, between 19:02 and 19:08.",
        ),
        (
            "Where is the trip going?",
            "The group plans a trip to Lisbon. That was earlier this evening, between 19:02 and 19:08.",
        ),
        (
            "Roomtone, who is afraid of spiders?",
            "Cy said: I am afraid of spiders and heights. That was about 40 minutes ago.",
        ),
        (
            "What is James sharing?",
            "On a screen: James is sharing Marvel Rivals on the Tokyo map.",
        ),
        (
            "Rent on, who is afraid of spiders?",
            "Cy said: I am afraid of spiders and heights. That was about 40 minutes ago.",
        ),
        ("What is the capital of Peru?", NOTHING),
        ("Roomtone?", "I am here, Bo. Ask me about what was said."),
        ("I painted the fence green.", NOT_UNDERSTOOD),
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
            "Ada sagte: Das Konzert beginnt um acht. Das war heute Abend zwischen 19:02 und 19:08.",
        ),
        (
            "Roomtone, wo ist der Schlüssel?",
            f"Cy sagte: {KEY} Das war vor etwa 40 Minuten.",
        ),
        (
            "Was ist die Hauptstadt von Peru?",
            "Dazu wurde hier nichts gesagt, Bo, oder ich habe dich nicht verstanden. Was ich kann, zeigt /hilfe.",
        ),
    ],
)
def test_a_german_question_is_answered_in_german(question: str, said: str) -> None:
    """What is not quoted is in the language of the question."""
    memory = [replace(MEMORY[0], text="Das Konzert beginnt um acht."), replace(MEMORY[2], text=KEY)]
    answered = answer(question, replace(KNOWN, evidence=memory), asker="Bo", why=NO_MODEL)
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
    answered = answer(question, replace(KNOWN, evidence=[]), asker="Bo", why=NO_MODEL, language=language)
    assert answered.endswith(in_language(NO_MODEL, "de" if german else "en"))


def test_it_says_once_that_no_model_is_configured() -> None:
    """With `why`, an answer ends with the notice that no language model is configured."""
    assert ask("Roomtone?", why=NO_MODEL) == f"I am here, Bo. Ask me about what was said. {NO_MODEL}"


def test_a_recap_is_a_few_sentences_from_earlier_and_from_lately() -> None:
    """A request for a recap is answered with a few quotes, older ones first, each with its speaker and time."""
    when = "That was earlier this evening, between 19:02 and 19:08."
    assert ask("What did I miss?", meaning="recap") == (
        f"Ada said: The vault code is four seven one nine. {when} The group plans a trip to Lisbon. {when} "
        "Cy said: I am afraid of spiders and heights. That was about 40 minutes ago."
    )
    empty = answer("Recap.", replace(KNOWN, evidence=[]), meaning="recap", asker="Bo")
    assert empty == "Nobody has said much yet, Bo."


def test_no_recap_has_what_was_said_to_the_bot() -> None:
    """What one person said is quoted from the talk; if they spoke to the bot alone, that is what they said."""
    to_bot = Evidence("Roomtone, stop recording our evening.", PartKind.TURN, "Cy", NOW - 60, NOW - 60, to_bot=True)
    heard = replace(KNOWN, evidence=[*MEMORY, to_bot])
    for meaning in ("recap", "said_by"):
        assert "stop recording" not in answer("What did Cy say?", heard, asker="Bo", meaning=meaning)
    only = answer("What did Cy say?", replace(KNOWN, evidence=[to_bot]), asker="Bo", meaning="said_by")
    assert "stop recording" in only


def test_each_meaning_has_its_answer() -> None:
    """What somebody said is quoted; without them it is a question like others. The time is that of the zone."""
    assert ask("What did Cy say?", meaning="said_by").startswith("Cy said: I am afraid of spiders")
    assert ask("What did Zoe say?", meaning="said_by") == NOTHING
    assert ask("What time is it?", meaning="time") == "It is 20:00."
    assert ask("Who is here?", meaning="who_is_here") == "I hear these people here: Ada, Bo, Cy."
    assert ask("How long have we talked?", meaning="how_long") == "This conversation began about an hour ago."
    assert ask("What day is it?", meaning="date") == "Today is Friday, 20 November."
    # Told from the memory, or by a tool.
    others = {"recap", "missed", "said_by", "ask", "told", "cancel", "reminders"}
    answers = {ask("Hm.", meaning=each) for each in set(MEANINGS) - others}
    assert len(answers) == len(MEANINGS) - len(others)


@pytest.mark.parametrize(
    ("meaning", "command"),
    [
        ("forget", "/forget-me"), ("readers", "/privacy"), ("recording", "/privacy"), ("stop_listening", "/opt-out"),
        ("cost", "/status"), ("ai", "/help"), ("name", "/help"),
    ],
)  # fmt: skip
def test_what_people_ask_about_trust_names_one_command(meaning: str, command: str) -> None:
    """In German by its German name."""
    assert re.findall(r"/[\w-]+", ask("Hm.", meaning=meaning)) == [command]
    german = answer("Hm.", KNOWN, meaning=meaning, asker="Bo", language="de")
    assert re.findall(r"/[\w-]+", german) == [f"/{catalogue('de').commands[command[1:]]}"]


def test_what_needs_a_model_is_said_with_the_way_to_one() -> None:
    """If there is one and it is away, nobody has to add another."""
    without, away = (ask("Tell me a joke.", meaning="model", why=why) for why in (NO_MODEL, MODEL_AWAY))
    assert without.endswith(f"{NO_MODEL} {ADD_MODEL}")
    assert away.endswith(MODEL_AWAY)


def test_a_few_of_many_people_are_named() -> None:
    """On a stage there may be hundreds, and the answer is spoken."""
    known = replace(KNOWN, present=tuple(f"P{number}" for number in range(MOST_NAMED + 5)))
    assert answer("Wer ist hier?", known, asker="Bo", meaning="who_is_here").endswith("P9 und 5 weitere.")


def test_a_very_long_quote_is_cut_at_a_word() -> None:
    """A very long quote is cut after a whole word, because it is read aloud."""
    long = Evidence("The vault " + "really " * 100, PartKind.TURN, "Cy", NOW - 60, NOW - 60)
    said = answer("What about the vault?", Known([long], NOW), asker="Bo")
    assert said.startswith("Cy said: The vault really")
    assert said.endswith("really …")
    assert len(said) < 320
