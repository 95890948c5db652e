"""Replies are spoken in the language of whom they answer, also what is synthesised before they are certain."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from bot.brain.context import ModelContext
from bot.brain.reply import Question
from bot.room.conversation.speaking import Speaking
from bot.texts.text import Text, verbatim
from compaction.context.build import SessionContext
from compaction.model import Mode, Seq, Turn, TurnKind, TurnPart
from tests.fakes.brain import FakeVoice, ScriptedResponder, until
from tests.fakes.clock import FakeClock
from tests.fakes.place import FakePlace

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from bot.brain.reply import Reply
    from voice.speaking.port import AudioChunk

TURN = Turn(Seq(7), TurnKind.SPEECH, 10.0, 11.0, (TurnPart("1", "Ada", "Was kostet die Laterne?"),))


class Polyglot(FakeVoice):
    """A voice that notes in which language it says what. Implements `RoomVoice`."""

    def __init__(self) -> None:
        super().__init__()
        self.language = ""
        self.said: list[tuple[str, str]] = []

    def prefer(self, language: str) -> None:
        self.language = language

    def status(self) -> Text:
        return verbatim("")

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        self.said.append((self.language, text))
        async for sound in super().stream(text):
            yield sound


async def context_of(question: Question) -> ModelContext:
    """Return the prompt for a question."""
    session = SessionContext(Mode.SUMMARY, 10, Seq(0), None, 0, None, None, (), (), question.turn, 1000)
    return ModelContext(session=session, current=question.turn, parts=(), messages=(), now=0.0)


async def ignore(_: Reply) -> None:
    """Take a finished reply."""


def speaking_with(voice: Polyglot, build_context: Callable[[Question], Awaitable[ModelContext]]) -> Speaking:
    """Return the speech of a room whose model answers in German."""
    services = SimpleNamespace(
        open_voice=lambda *_: voice,
        speech=SimpleNamespace(synthesizer=voice, moderator=None),
        clock=FakeClock(),
        replies=SimpleNamespace(
            new_responder=lambda: ScriptedResponder("Die kostet 5 €. Mehr weiß ich nicht."), timeout_s=5.0
        ),
        brain=SimpleNamespace(name="Roomtone"),
        speaking=SimpleNamespace(pronounced_in=lambda _: {}, blocked_in=lambda _: ()),
    )
    return Speaking(
        FakePlace(),
        cast("Any", services),
        build_context=build_context,
        on_reply=ignore,
        tell=lambda _: None,
        wake_names=(),
        bridge=None,
    )


async def test_a_reply_that_is_begun_early_is_spoken_in_its_language() -> None:
    """After an answer in English the first sentence of a German one has a German voice and German words, although it is
    synthesised before the answer begins.
    """
    voice = Polyglot()
    speaking = speaking_with(voice, context_of)
    voice.prefer("en")
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(speaking.replies.run(), name="preemptive-reply-under-test")
        await asyncio.sleep(0)
        speaking.replies.start(Question(TURN, "u1", 1.0, "1", language="de"))
        await until(lambda: bool(voice.said))
        run.cancel()
    assert voice.said == [("de", "Die kostet 5 Euro.")]
