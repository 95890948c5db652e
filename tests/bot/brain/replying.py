"""A replier with fake surroundings, and the replies that it has finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import numpy as np

from bot.brain.context import ModelContext
from bot.brain.question import Question, whole_turn
from bot.brain.replier import Replier
from bot.brain.reply import Reply
from bot.brain.speech_output import SpeechRules
from bot.brain.tools.toolbox import Toolbox, UntilWanted
from bot.words import Words
from compaction.context.build import SessionContext
from compaction.model import Mode, Seq, Turn, TurnKind, TurnPart
from tests.fakes.brain import FakeVoice, Listener, ScriptedResponder
from tests.fakes.clock import FakeClock
from tests.fakes.questions import asked
from tests.fakes.room_channel import FakeRoomChannel
from tests.patience import PATIENCE_S
from voice.audio import DISCORD_RATE_HZ
from voice.speaking.moderation import ForbiddenWordsError, ModerationError
from voice.speaking.playback import Playback
from voice.speaking.port import Speech

TIMEOUT_S = 20.0
FIRST, SECOND, THIRD = (
    asked(Turn(Seq(seq), TurnKind.SPEECH, 0.0, 1.0, (TurnPart("1", "Ada", "Well?"),)), f"u{seq}") for seq in (7, 8, 9)
)


class Censor:
    """A moderator that objects to one word and raises an error for another."""

    async def objection(self, text: str) -> str | None:
        """Return the objection to a text, if there is one."""
        if "unclear" in text:
            raise ModerationError("Nobody could check it. Look at the endpoint.")
        return "violence" if "violent" in text else None


class ReplyBench:
    """A replier with fake surroundings, and the replies that it has finished."""

    def __init__(
        self,
        responder: ScriptedResponder,
        *,
        timeout_s: float = TIMEOUT_S,
        speaker: Speaker | None = None,
        words: Words | None = None,
        **pronunciations: str,
    ) -> None:
        self.channel = FakeRoomChannel()
        self.clock = FakeClock()
        self.responder = responder
        self.toolbox = Toolbox()
        # The questions for which a prompt was made, and why it cannot be made.
        self.built: list[Question] = []
        self.error: BaseException | None = None
        self.replies: list[Reply] = []
        self.finished = asyncio.Event()
        self.voice = FakeVoice()
        self.moderator = Censor()
        self.playback = Playback(monotonic=lambda: 5.0)
        self.listener = Listener(self.playback)
        self.replier = Replier(
            build_context=self._context,
            responder=responder,
            playback=self.playback,
            clock=self.clock,
            timeout_s=timeout_s,
            on_reply=self._keep,
            words=words or Words(),
            speech_to_speech=speaker,
            rules=SpeechRules(
                self.channel,
                self.voice,
                pronunciations=pronunciations,
                blocked_words=("rude*", "two words"),
                moderator=self.moderator,
            ),
        )

    async def _context(self, question: Question) -> ModelContext:
        self.built.append(question)
        if self.error is not None:
            raise self.error
        session = SessionContext(Mode.SUMMARY, Seq(0), None, 0, None, None, (), (), question.turn, 1000)
        return ModelContext(
            session=session,
            current=question.turn,
            asked=whole_turn(question),
            parts=(),
            messages=(),
            now=0.0,
            tools=self.toolbox.for_asker(),
            channel_language=self.channel.language,
        )

    async def _keep(self, reply: Reply) -> None:
        self.replies.append(reply)
        self.finished.set()

    async def next_reply(self) -> Reply:
        """Wait for the next finished reply."""
        await self.finished.wait()
        self.finished.clear()
        return self.replies[-1]

    async def answered(self, question: Question = FIRST) -> Reply:
        """Ask while people listen, and return the finished reply."""
        async with self.listener.listening(), self.running():
            self.replier.ask(question)
            return await self.next_reply()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Replier]:
        """Run the replier."""
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
            run = tasks.create_task(self.replier.run(), name="replier")
            await asyncio.sleep(0)
            yield self.replier
            run.cancel()


class Speaker:
    """A fake speech-to-speech model that speaks one second for each word and raises the exceptions among its words, and
    in place of a forbidden word. `glued`: there are no spaces between its words.
    """

    def __init__(self, *words: str | BaseException, gone_after: bool = False, glued: bool = False) -> None:
        self.words = words
        self.glued = glued
        self.usable = True
        self.gone_after = gone_after
        self.told: list[tuple[float, bool]] = []

    async def speak(self, reply: Reply, rules: SpeechRules, until_wanted: UntilWanted) -> AsyncGenerator[Speech, None]:
        for word in self.words:
            if isinstance(word, str) and rules.forbids(word):
                raise ForbiddenWordsError
            if isinstance(word, BaseException):
                self.usable = not self.gone_after
                raise word
            yield Speech(word, np.full(DISCORD_RATE_HZ, 100, np.int16), DISCORD_RATE_HZ, self.glued)

    def report_heard(self, heard_s: float, *, complete: bool, counts: bool) -> None:
        """Keep the report."""
        self.told.append((round(heard_s, 2), complete))
