"""Requests without a language model, spoken and typed: what the bot does and says, with the real embedder."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bot.brain.embedded.chat import EmbeddedResponder, FirstSentences
from bot.brain.tools.tool import Asker
from bot.brain.tools.toolbox import Toolbox
from bot.conversation.reminding import reminder_tools
from tests.bot.brain.talk import a_talk
from tests.bot.brain.tools.calls import Book
from tests.fakes.clock import FakeClock

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 19, 20, 0, tzinfo=ZONE).timestamp()
ADA = 1
TALK = (
    ("Ben", "Let's play it on Saturday."),
    ("Cy", "The key is under the flower pot."),
    ("Cy", "Wir treffen uns am Bahnhof."),
    ("Ben", "The concert starts at nine."),
    ("Ben", "I will order the pizza for everybody."),
    ("Cy", "The light in the hall is broken."),
)
# By what a request gets, words of its answer: each in English or in German.
SAYS = {
    "deleted": ("deleted it: water the plants", "gelöscht: water the plants"),
    "listed": ("water the plants.",),
    "no time": ("in how many minutes", "in wie vielen Minuten"),
    "over": ("That time is in the past", "Diese Zeit ist schon vorbei"),
    "nobody": ("I see nobody here with the name",),
    "no reminder": ("You have no such reminder",),
    "date": ("Today is Thursday, 19 November.", "Heute ist Donnerstag, der 19. November."),
    "stop_listening": ("Type /opt-out",),
    "missed": ("The light in the hall is broken.",),
    "recap": ("The light in the hall is broken.",),
    "no model": ("I can't do that without a language model", "Das kann ich ohne Sprachmodell nicht"),
    "who_is_here": ("Ada, Ben, Cy",),
    "recording": ("I keep what is said as text",),
    "time": ("It is 20:00.",),
    "said_by": ("The concert starts at nine.",),
    "hears": ("I hear you",),
    "forget": ("Type /forget-me",),
    "readers": ("can read it later",),
    "leave": ("Type /leave",),
    "help": ("see what else I can do",),
    "ai": ("I am a program",),
    "cost": ("You pay nothing",),
    "thanks": ("Gern, Ada.", "Tschüss, Ada."),
    "parting": ("Goodbye, Ada.",),
    "talk": ("I do not understand that", "Das verstehe ich ohne", "I am here, Ada.", "Hallo, Ada.", "You are welcome"),
    "nothing": ("I have heard nothing about", "Dazu wurde hier nichts gesagt"),
}
# Words of what is true of all that was not understood, and tells what to type.
UNSURE = ("I did not understand", "I do not understand that", "nicht verstanden", "Das verstehe ich ohne")
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.models]


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("Wo ist der Schlüssel?", "Cy sagte: The key is under the flower pot."),
        ("Wann beginnt das Konzert?", "Ben sagte: The concert starts at nine."),
        ("Where do we meet at the railway station?", "Cy said: Wir treffen uns am Bahnhof."),
        ("Wann ist die Hochzeit?", "Dazu wurde hier nichts gesagt"),
    ],
)
async def test_a_question_finds_what_was_said_in_another_language(
    sentences: FirstSentences, said: str, quoted: str
) -> None:
    """If nobody said it in the language of the question."""
    answer, _ = await play(said, sentences)
    assert answer.startswith(quoted)


async def play(said: str, sentences: FirstSentences) -> tuple[str, Book]:
    """Return what Ada is answered, and the reminders then."""
    book = Book()
    await book.add(ADA, NOW + 7_200, what="water the plants", whom="", in_chat=False)
    toolbox = Toolbox(personal=lambda asker: reminder_tools(asker, book, clock=FakeClock(NOW), zone=ZONE))
    async with a_talk() as talk:
        talk.at = NOW - 600
        for speaker, text in TALK:
            await talk.say(speaker, text)
        context = talk.context(await talk.say("Ada", said))
        turn = replace(context.current, parts=(replace(context.current.parts[0], speaker_id=str(ADA)),))
        context = replace(
            context,
            current=turn,
            asked=turn,
            now=NOW,
            present=("Ada", "Ben", "Cy"),
            tools=toolbox.for_asker(Asker(ADA, "Ada", present=True)),
        )
        # They have heard already that there is no model.
        responder = EmbeddedResponder(since=NOW + 1, first_sentences=sentences, zone=ZONE)
        _ = [piece async for piece in responder.respond(replace(context, tools=Toolbox().for_asker()))]
        answer = [piece async for piece in responder.respond(context)]
    return "".join(answer), book


def is_right(wanted: dict[str, Any], answer: str, book: Book) -> bool:
    """Return whether a request got what it should."""
    kept = [each for each in book.kept if each.what != "water the plants"]
    if wanted["gets"] == "reminder":
        at = datetime.fromisoformat(wanted["at"]).replace(tzinfo=ZONE).timestamp()
        found = [(each.due_at, each.what, each.whom) for each in kept]
        return found == [(at, wanted.get("what", ""), wanted.get("whom", ""))]
    if kept or (len(book.kept) == 0) != (wanted["gets"] == "deleted"):
        return False
    says = (wanted["quote"],) if wanted["gets"] == "quote" else SAYS[wanted["gets"]]
    return any(each in answer for each in says)


@pytest.mark.parametrize(("part", "least"), [("requests", 86), ("requests_apart", 24), ("sixty", 33)])
async def test_requests_are_fulfilled_or_refused_in_plain_words(
    sentences: FirstSentences, part: str, least: int
) -> None:
    """At most one in ten gets an answer that does not fit, and nothing is quoted for a request. What is not understood
    is told so, with what to type.
    """
    table = tomllib.loads((Path(__file__).parent / f"{part}.toml").read_text("utf-8"))["said"]
    wrong: list[tuple[str, str]] = []
    for wanted in table:
        answer, book = await play(wanted["text"], sentences)
        if not is_right(wanted, answer, book):
            wrong.append((wanted["text"], answer))
        assert wanted["gets"] != "no model" or not any(text in answer for _, text in TALK), answer
    misfits = [each for each in wrong if not any(words in each[1] for words in UNSURE)]
    assert len(misfits) <= len(table) / 10, misfits
    assert len(table) - len(wrong) >= least, wrong
