"""Produces replies: each is generated and spoken (`speech_output`), and recorded as far as it was heard.

One reply is in progress at a time, and at most one question waits; a newer question replaces it. `decider` decides
whether the bot answers at all.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.brain.reply import Reply
from bot.brain.speech_output import SpeechOutput, broken_off, sentences_of
from bot.read_ahead import ReadAhead
from bot.texts.text import OperatorText, Text
from compaction.errors import CompactionError, ContextOverflowError
from voice.errors import RealtimeError
from voice.queue_figures import QueueFigures
from voice.speaking.moderation import ForbiddenWordsError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from bot.brain.reply import Question
    from bot.brain.speech_output import SpeechRules
    from bot.clock import Clock
    from voice.speaking.playback import Playback
    from voice.speaking.port import Speech, Synthesizer

log = structlog.get_logger()

TOO_SLOW = OperatorText(
    "I took too long over an answer and gave it up. Ask me again; `roomtone tail` shows what was slow.",
    Text("I took too long over an answer and gave it up. Ask me again."),
)


class SpeechToSpeech(Protocol):
    """A speech-to-speech model, which answers with sound instead of text."""

    @property
    def usable(self) -> bool:
        """Return whether the model can answer now."""

    def speak(self, question: Question, *, forbids: Callable[[str], bool]) -> AsyncGenerator[Speech, None]:
        """Yield the reply as it arrives; nothing if the model skips it. Raises `CompactionError` and `RealtimeError`,
        also after some pieces, and `ForbiddenWordsError` before the sound of words that `forbids` does not allow.
        """

    def report_heard(self, heard_s: float, *, complete: bool) -> None:
        """Tell the model how many seconds of the reply were heard. Called once after each `speak`."""


class Replier:
    """Produces replies one after the other. `run` is its task, owned by the room.

    `begin`: begins the answer to a question and returns its pieces. `on_reply`: gets each finished reply, also one that
    nobody heard. `on_begun`: called with each question when its answer begins.
    *Cancellation* of `run` stops speech at once; call `shut_down` first, so that the heard part is recorded.
    """

    def __init__(
        self,
        *,
        begin: Callable[[Question], Awaitable[AsyncGenerator[str, None]]],
        synthesizer: Synthesizer,
        playback: Playback,
        clock: Clock,
        timeout_s: float,
        on_reply: Callable[[Reply], Awaitable[None]],
        rules: SpeechRules,
        speech_to_speech: SpeechToSpeech | None = None,
        on_begun: Callable[[Question], None] = lambda _: None,
    ) -> None:
        self._begin = begin
        self._playback = playback
        self._clock = clock
        self._timeout_s = timeout_s
        self._on_reply = on_reply
        self._rules = rules
        self._speech_to_speech = speech_to_speech
        self._on_begun = on_begun
        self._output = SpeechOutput(synthesizer, playback, clock, rules)
        # The question that is answered when the reply in progress has ended.
        self.waiting: Question | None = None
        self._superseded = 0
        self._question_added = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        # Clear from the interruption of a reply until it is recorded.
        self._recorded = asyncio.Event()
        self._recorded.set()
        self._shut_down = False
        self._current: Reply | None = None

    @property
    def queue(self) -> QueueFigures:
        """Return the question that waits."""
        return QueueFigures("answer", int(self.waiting is not None), 1, {"superseded": self._superseded})

    @property
    def busy(self) -> bool:
        """Whether a reply is in progress or a question waits."""
        return not self._idle.is_set()

    @property
    def speaking(self) -> bool:
        """Whether speech of the reply in progress has started."""
        return self._current is not None and bool(self._current.pieces)

    def interrupt_current(self) -> None:
        """Stop the reply in progress at once; the waiting question is answered next. For barge-in."""
        if self._current is not None and not self._current.stopped:
            self._recorded.clear()
            self._current.stop(asyncio.get_running_loop().time())
            self._playback.stop()

    def cancel_all(self) -> None:
        """Stop the reply in progress at once and discard the waiting question. For a request to be silent."""
        self.waiting = None
        self.interrupt_current()

    async def wait_until_recorded(self, *, within_s: float) -> None:
        """Wait up to `within_s` until an interrupted reply is recorded, so that the next turn follows it."""
        await _wait(self._recorded, within_s)

    def ask(self, question: Question) -> None:
        """Queue `question`, in place of the one that waits, if any."""
        self._superseded += self.waiting is not None
        self.waiting = question
        self._idle.clear()
        self._question_added.set()

    async def shut_down(self, *, within_s: float) -> None:
        """Stop the reply in progress, answer nothing more, and wait up to `within_s` until the reply is recorded. Call
        it once, before cancelling `run`.
        """
        self._shut_down, self.waiting = True, None
        if self._current is not None:
            self._current.stop(asyncio.get_running_loop().time())
        await _wait(self._idle, within_s)

    async def run(self) -> None:
        """Answer questions, for ever."""
        while True:
            await self._question_added.wait()
            self._question_added.clear()
            question, self.waiting = self.waiting, None
            try:
                if question is not None and not self._shut_down:
                    await self._on_reply(await self._answer(question))
            finally:
                self._recorded.set()
                if self.waiting is None:
                    self._idle.set()

    async def _answer(self, question: Question) -> Reply:
        self._on_begun(question)
        reply = self._current = Reply(question, self._clock.monotonic())
        try:
            async with asyncio.timeout(self._timeout_s) as reply.limit:
                try:
                    if not await self._answer_in_speech(reply):
                        begun = await self._begin(question)
                        # It is read at once, so that a tool that it calls does not wait for the words before it.
                        async with asyncio.TaskGroup() as tasks:
                            ahead = ReadAhead(begun, tasks, name="generate-answer", broken_off=broken_off)
                            await self._output.speak(sentences_of(ahead.take(), reply, self._clock), reply)
                except ContextOverflowError as error:
                    if question.may_skip:
                        reply.skip(error)
                    else:
                        await self._output.apologise(error, reply)
                await self._output.wait_until_played(reply)
        except TimeoutError:
            if not reply.stopped:
                reply.give_up("time", TOO_SLOW)
        except CompactionError as error:
            # Session memory could not be read.
            reply.give_up("context", error)
        except asyncio.CancelledError as error:
            # If this task itself was not cancelled, only this reply is lost. Raised further, the error would end the
            # replier silently, and the room would never get an answer again.
            reply.give_up("cancelled", broken_off(error))
        finally:
            reply.limit = self._current = None
            # After this, no sound of this reply is played. Pieces that were already played stay as they are.
            self._playback.stop()
        reply.conclude(self._clock.monotonic())
        if reply.speech_to_speech and self._speech_to_speech is not None:
            # A failed reply ends at its last played piece, even if the service keeps sending.
            played = reply.played(reply.model_pieces)
            broke_off = reply.stopped or reply.dropped or reply.failure is not None
            complete = not broke_off and all(piece.complete for piece in played)
            self._speech_to_speech.report_heard(sum(piece.played_s for piece in played), complete=complete)
        return reply

    async def _answer_in_speech(self, reply: Reply) -> bool:
        """Answer with speech-to-speech. Return False if the text pipeline has to answer instead."""
        direct, question = self._speech_to_speech, reply.question
        if direct is None or not direct.usable:
            return False
        reply.speech_to_speech = True
        # Models sometimes say nothing at all, and a provider may have filtered what they said.
        problem: RealtimeError | str = "no_sound"
        try:
            async with aclosing(direct.speak(question, forbids=self._rules.forbids)) as stream:
                async for speech in stream:
                    reply.on_first_token(self._clock.monotonic())
                    if not await self._output.queue(speech, reply):
                        break
        except ForbiddenWordsError:
            self._rules.report_blocked("word_list", reply)
            # What is queued is not played either: it may be the beginning of the same sentence.
            self._playback.stop()
        except RealtimeError as error:
            problem = error
            if reply.pieces:
                # People listen to it and would wait for the rest.
                reply.model_pieces = len(reply.pieces)
                # The bridge tells the channel and the log if speech-to-speech is given up, and why.
                await self._output.apologise(error if direct.usable else None, reply)
        if reply.pieces or reply.failure is not None:
            return True
        if problem == "no_sound" and question.may_skip:
            reply.skip()
            return True
        log.warning("speech_to_speech_reply_failed", problem=problem)
        reply.speech_to_speech = False
        direct.report_heard(0.0, complete=False)
        if question.asker_id == "":
            # Nobody waits for an unasked reply.
            reply.skip()
        return reply.skipped


async def _wait(recorded: asyncio.Event, within_s: float) -> None:
    try:
        async with asyncio.timeout(within_s):
            await recorded.wait()
    except TimeoutError:
        log.warning("reply_not_recorded", within_s=within_s)
