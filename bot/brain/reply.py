"""Carrying out an answer: it is thought (`thinking`), spoken (`speaking`), and recorded as far as it was heard.

One answer is in the works at a time and at most one question waits; a newer question takes the waiting one's
place. Whether to answer is decided in `decider`; this shell only conducts, times, and tells how it went.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.brain.generation import ReplyGenerator, new_sentence_queue
from bot.brain.reply_progress import ReplyProgress, elapsed_ms
from bot.brain.speech_output import SpeechOutput
from compaction.errors import CompactionError, ContextOverflowError
from voice.errors import RealtimeError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from bot.brain.context import ModelContext
    from bot.brain.decider import Reason
    from bot.brain.responder import Responder
    from bot.clock import Clock
    from compaction.model import Turn
    from voice.speaking.moderation import Moderator
    from voice.speaking.playback import Playback
    from voice.speaking.port import Speech, Synthesizer

log = structlog.get_logger()

TOO_SLOW = "I took too long over an answer and gave it up. Ask me again; `roomtone tail` shows what was slow."
BROKEN_OFF = "My answer broke off before I could give it. Ask me again."


@dataclass(frozen=True, slots=True)
class Question:
    """The turn to be answered; `utterance_id` is the speech it came from, `ended_at` when that ended (monotonic).

    `asker_id`: of several who speak in the turn the one who is answered, as turns know people; empty: nobody, it is a
    thought of the bot's own. `reason`: why it is answered. `may_skip`: the model may find that nothing is to be said.
    """

    turn: Turn
    utterance_id: str | None = None
    ended_at: float | None = None
    asker_id: str | None = None
    reason: Reason | None = None
    may_skip: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """How an answer went. `text` is what was heard of it; times are monotonic seconds, durations milliseconds."""

    question: Question
    text: str
    interrupted: bool
    first_audio_at: float | None
    ended_at: float
    model_first_token_ms: float | None
    synthesis_first_audio_ms: float | None
    # A plain sentence for the people in the channel, when something failed; never holds what was said.
    failure: str | None
    # What the voice could not say; the room writes it instead.
    unsaid: str = ""
    # There was nothing to say.
    skipped: bool = False


class SpeechToSpeech(Protocol):
    """Somebody who answers in sound at once, without words to be spoken in between: speech-to-speech."""

    @property
    def usable(self) -> bool:
        """Return whether to ask at all."""

    def speak(self, question: Question) -> AsyncGenerator[Speech, None]:
        """Yield the answer as it comes; nothing where the question may be skipped and there is nothing to say. Raises
        `RealtimeError`, also after some pieces, and `CompactionError`."""

    def spoken(self, heard_s: float, *, complete: bool) -> None:
        """Take note of how much of the answer was heard. Called once after each `speak`."""


class Replier:
    """Carries out answers one after the other. `run` is its task, owned by the room.

    `build_context` makes what the responder is given; `on_reply` gets each finished answer (also one of which
    nothing was heard). *Cancellation* of `run` stops speech at once; call `shut_down` first, to record what was heard.
    """

    def __init__(
        self,
        *,
        build_context: Callable[[Question], Awaitable[ModelContext]],
        responder: Responder,
        synthesizer: Synthesizer,
        playback: Playback,
        clock: Clock,
        timeout_s: float,
        on_reply: Callable[[Reply], Awaitable[None]],
        own_names: Sequence[str] = (),
        pronunciations: Mapping[str, str] | None = None,
        blocked_words: Sequence[str] = (),
        moderator: Moderator | None = None,
        direct: SpeechToSpeech | None = None,
    ) -> None:
        self._build_context = build_context
        self._playback = playback
        self._clock = clock
        self._timeout_s = timeout_s
        self._on_reply = on_reply
        self._direct = direct
        self._thinking = ReplyGenerator(responder, clock)
        self._speaking = SpeechOutput(
            synthesizer=synthesizer,
            playback=playback,
            clock=clock,
            on_queued=self._sounds,
            own_names=own_names,
            pronunciations=pronunciations,
            blocked_words=blocked_words,
            moderator=moderator,
        )
        self._waiting: Question | None = None
        self._asked = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._scope: asyncio.Timeout | None = None
        self._shut_down = False
        # Whether the answer in the works has been broken off, and whether none is that still has to be recorded.
        self._interrupted = False
        self._recorded = asyncio.Event()
        self._recorded.set()
        self._progress: ReplyProgress | None = None

    @property
    def waiting(self) -> Question | None:
        """Return the question that waits behind the answer being spoken."""
        return self._waiting

    @property
    def busy(self) -> bool:
        """Return whether an answer is in the works."""
        return not self._idle.is_set()

    @property
    def sounding(self) -> bool:
        """Return whether an answer is in the works that has begun to be spoken."""
        return self._progress is not None and bool(self._progress.pieces)

    def interrupt_current(self) -> None:
        """Stop the reply in progress at once; the waiting question is answered next. For barge-in."""
        if self._scope is None or self._interrupted:
            return
        self._interrupted = True
        self._recorded.clear()
        self._playback.stop()
        self._scope.reschedule(asyncio.get_running_loop().time())

    def cancel_all(self) -> None:
        """Stop the reply in progress at once and discard the waiting question. For a request to be silent."""
        self._waiting = None
        self.interrupt_current()

    async def wait_until_recorded(self, *, within_s: float) -> None:
        """Wait until an interrupted reply is recorded, for `within_s` at most, so that the next turn follows it."""
        try:
            async with asyncio.timeout(within_s):
                await self._recorded.wait()
        except TimeoutError:
            log.warning("reply_not_recorded", within_s=within_s)

    def ask(self, question: Question) -> Question | None:
        """Take `question` on; return the waiting one whose place it took."""
        superseded, self._waiting = self._waiting, question
        self._idle.clear()
        self._asked.set()
        return superseded

    async def shut_down(self, *, within_s: float) -> None:
        """Stop the reply in progress, answer nothing more, and wait until the reply is recorded, for `within_s` at
        most. Call it once, before cancelling `run`."""
        self._shut_down = True
        self._waiting = None
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(within_s):
                await self._idle.wait()
        except TimeoutError:
            log.warning("reply_not_recorded", within_s=within_s)

    async def run(self) -> None:
        """Answer what is asked, for ever."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            question, self._waiting = self._waiting, None
            try:
                if question is not None and not self._shut_down:
                    await self._on_reply(await self._answer(question))
            finally:
                self._recorded.set()
                if self._waiting is None:
                    self._idle.set()

    async def _answer(self, question: Question) -> Reply:
        progress = self._progress = ReplyProgress(begun_at=self._clock.monotonic())
        self._interrupted = False
        try:
            async with asyncio.timeout(self._timeout_s) as self._scope:
                try:
                    if not await self._speak_directly(question, progress):
                        context = await self._build_context(question)
                        await self._think_and_speak(context, progress, may_skip=question.may_skip)
                except ContextOverflowError as error:
                    if question.may_skip:
                        progress.skip(str(error))
                    else:
                        await self._refuse(error, progress)
        except TimeoutError:
            if not self._broken_off:
                progress.fail("time", TOO_SLOW)
        except CompactionError as error:
            # The memory could not be read.
            progress.fail("context", str(error))
        except asyncio.CancelledError:
            # Where nobody cancelled this task, something that the answer waited for was: it costs this answer. Passed
            # on, it would end the replier without a word, and the room would never be answered again.
            if _being_cancelled():
                raise
            progress.fail("cancelled", BROKEN_OFF)
        finally:
            self._scope = self._progress = None
            # However this ends, nothing of this answer may sound later. Pieces played out are not touched.
            self._playback.stop()
        if progress.direct and self._direct is not None:
            # One that failed on its way ends where it was heard, whatever its maker goes on sending.
            failed = progress.failure is not None
            complete = all(piece.complete for piece in progress.played) and not self._broken_off and not failed
            self._direct.spoken(sum(piece.played_s for piece in progress.played), complete=complete)
        return self._reply(question, progress)

    async def _speak_directly(self, question: Question, progress: ReplyProgress) -> bool:
        """Let speech-to-speech answer; return whether it did, at least in part."""
        direct = self._direct
        if direct is None or not direct.usable:
            return False
        progress.direct = True
        try:
            async with aclosing(direct.speak(question)) as stream:
                async for speech in stream:
                    if progress.model_first_token_ms is None:
                        progress.model_first_token_ms = elapsed_ms(progress.begun_at, self._clock.monotonic())
                    if not await self._speaking.queue(speech, progress):
                        break
        except RealtimeError as error:
            if not progress.pieces:
                # Nothing was heard yet, so the answer comes the other way; whether for good is told elsewhere.
                log.warning("direct_reply_failed", problem=str(error))
                progress.direct = False
                direct.spoken(0.0, complete=False)
                if question.asker_id == "":
                    # Nobody waits for a thought of the bot's own.
                    progress.skip(str(error))
                return progress.skipped
            if self._direct is not None and self._direct.usable:
                progress.fail("model", str(error))
            else:
                # That it is gone, and why, is told elsewhere.
                log.warning("direct_reply_broke_off", problem=str(error))
        if question.may_skip and not progress.pieces and progress.failure is None:
            progress.skip()
        await self._speaking.play_out(progress)
        return True

    def _sounds(self) -> None:
        """From here on the sound's own length is the bound."""
        if self._scope is not None and not self._broken_off:
            self._scope.reschedule(None)

    async def _refuse(self, error: ContextOverflowError, progress: ReplyProgress) -> None:
        """Say aloud what to do about a question that is too much; the figures are written."""
        thoughts = new_sentence_queue()
        for thought in (error, None):
            thoughts.put_nowait(thought)
        await self._speaking.speak(thoughts, progress)
        await self._speaking.play_out(progress)

    async def _think_and_speak(self, context: ModelContext, progress: ReplyProgress, *, may_skip: bool) -> None:
        thoughts = new_sentence_queue()
        async with asyncio.TaskGroup() as tasks:
            think = self._thinking.think(context, thoughts, progress, may_skip=may_skip)
            thinking = tasks.create_task(think, name="think")
            await self._speaking.speak(thoughts, progress)
            # After a failure of the voice there may be nobody left to take sentences.
            thinking.cancel()
        await self._speaking.play_out(progress)

    def _reply(self, question: Question, progress: ReplyProgress) -> Reply:
        played = progress.played
        starts = [piece.first_frame_at for piece in played if piece.first_frame_at is not None]
        return Reply(
            question=question,
            text=" ".join(heard for piece in played if (heard := piece.heard_text)),
            interrupted=any(not piece.complete for piece in played),
            first_audio_at=min(starts, default=None),
            ended_at=self._clock.monotonic(),
            model_first_token_ms=progress.model_first_token_ms,
            synthesis_first_audio_ms=progress.synthesis_first_audio_ms,
            failure=progress.failure,
            unsaid=" ".join(progress.unsaid),
            skipped=progress.skipped,
        )

    @property
    def _broken_off(self) -> bool:
        return self._shut_down or self._interrupted


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
