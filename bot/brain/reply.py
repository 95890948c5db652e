"""Produces replies: each is generated (`generation`), spoken (`speech_output`), and recorded as far as it was heard.

One reply is in progress at a time, and at most one question waits; a newer question replaces it. `decider` decides
whether the bot answers at all.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.brain.generation import BROKEN_OFF, SENTENCES_AHEAD, SentenceQueue, new_sentence_queue, sentences_of
from bot.brain.reply_progress import ReplyProgress, elapsed_ms
from bot.brain.speech_output import SpeechOutput
from bot.texts.text import Text
from compaction.errors import CompactionError, ContextOverflowError
from voice.cancellation import is_being_cancelled
from voice.errors import RealtimeError
from voice.queue_figures import QueueFigures
from voice.speaking.moderation import ForbiddenWordsError
from voice.speaking.playback import joined_texts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from bot.brain.decider import Reason
    from bot.brain.speech_output import SentenceReader, SpeechRules
    from bot.brain.tools.frozen_calls import FrozenCall
    from bot.channel.port import TypedMessage
    from bot.clock import Clock
    from compaction.model import Turn
    from voice.speaking.playback import Playback
    from voice.speaking.port import Speech, Synthesizer

log = structlog.get_logger()

TOO_SLOW = Text("I took too long over an answer and gave it up. Ask me again; `roomtone tail` shows what was slow.")


@dataclass(frozen=True, slots=True)
class Question:
    """The turn to answer. `utterance_id`: the speech it came from; `ended_at`: when that ended, monotonic seconds.

    `asker_id`: the person to answer, if several people speak in the turn; empty if the bot speaks unasked. `reason`:
    why the bot answers. `may_skip`: the model may decide to say nothing. `language`: the code of the language to answer
    in; empty: that of the conversation. `pressed`: the call that ran on their press, whose result is to be told.
    `typed`: the message below which the answer is written, where somebody did not say it.
    """

    turn: Turn
    utterance_id: str | None = None
    ended_at: float | None = None
    asker_id: str | None = None
    reason: Reason | None = None
    may_skip: bool = False
    language: str = ""
    pressed: FrozenCall | None = None
    typed: TypedMessage | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished reply. `text`: the part that was heard. Times are monotonic seconds, durations milliseconds."""

    question: Question
    text: str
    interrupted: bool
    first_audio_at: float | None
    begun_at: float
    ended_at: float
    model_first_token_ms: float | None
    synthesis_first_audio_ms: float | None
    # A plain sentence for the channel if something failed. It never quotes what was said.
    failure: Text | None
    # Text for which synthesis failed; the room writes it in the channel instead.
    unsaid: str = ""
    # The model decided to say nothing.
    skipped: bool = False
    # Nobody can hear the bot: its voice failed, or the connection took no sound.
    unheard: bool = False


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
    nobody heard.
    `on_begun`: called with each question when its answer begins.
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
        self._on_begun = on_begun
        self._begin = begin
        self._playback = playback
        self._clock = clock
        self._timeout_s = timeout_s
        self._on_reply = on_reply
        self._speech_to_speech = speech_to_speech
        self._output = SpeechOutput(
            synthesizer=synthesizer,
            playback=playback,
            clock=clock,
            on_queued=self._on_audio_queued,
            rules=rules,
        )
        self._waiting: Question | None = None
        self._superseded = 0
        self._sentences: SentenceQueue | None = None
        self._question_added = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._timeout: asyncio.Timeout | None = None
        self._shut_down = False
        # Clear from the interruption of a reply until it is recorded.
        self._recorded = asyncio.Event()
        self._recorded.set()
        self._progress: ReplyProgress | None = None

    @property
    def waiting(self) -> Question | None:
        """Return the question that is answered when the reply in progress has ended; None: no question waits."""
        return self._waiting

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return the question that waits, and the sentences that wait for the voice."""
        return (
            QueueFigures("answer", int(self._waiting is not None), 1, {"superseded": self._superseded}),
            QueueFigures("sentences", 0 if self._sentences is None else self._sentences.qsize(), SENTENCES_AHEAD),
        )

    @property
    def busy(self) -> bool:
        """Whether a reply is in progress or a question waits."""
        return not self._idle.is_set()

    @property
    def speaking(self) -> bool:
        """Whether speech of the reply in progress has started."""
        return self._progress is not None and bool(self._progress.pieces)

    def new_reader(self) -> SentenceReader:
        """See `SpeechOutput.new_reader`."""
        return self._output.new_reader()

    def interrupt_current(self) -> None:
        """Stop the reply in progress at once; the waiting question is answered next. For barge-in."""
        if self._progress is None or self._progress.stopped:
            return
        self._recorded.clear()
        self._stop(self._progress)
        self._playback.stop()

    def cancel_all(self) -> None:
        """Stop the reply in progress at once and discard the waiting question. For a request to be silent."""
        self._waiting = None
        self.interrupt_current()

    async def wait_until_recorded(self, *, within_s: float) -> None:
        """Wait up to `within_s` until an interrupted reply is recorded, so that the next turn follows it."""
        try:
            async with asyncio.timeout(within_s):
                await self._recorded.wait()
        except TimeoutError:
            log.warning("reply_not_recorded", within_s=within_s)

    def ask(self, question: Question) -> None:
        """Queue `question`, in place of the one that waits, if any."""
        self._superseded += self._waiting is not None
        self._waiting = question
        self._idle.clear()
        self._question_added.set()

    async def shut_down(self, *, within_s: float) -> None:
        """Stop the reply in progress, answer nothing more, and wait up to `within_s` until the reply is recorded. Call
        it once, before cancelling `run`.
        """
        self._shut_down = True
        self._waiting = None
        if self._progress is not None:
            self._stop(self._progress)
        try:
            async with asyncio.timeout(within_s):
                await self._idle.wait()
        except TimeoutError:
            log.warning("reply_not_recorded", within_s=within_s)

    async def run(self) -> None:
        """Answer questions, for ever."""
        while True:
            await self._question_added.wait()
            self._question_added.clear()
            question, self._waiting = self._waiting, None
            try:
                if question is not None and not self._shut_down:
                    await self._on_reply(await self._answer(question))
            finally:
                self._recorded.set()
                if self._waiting is None:
                    self._idle.set()

    async def _answer(self, question: Question) -> Reply:
        self._on_begun(question)
        progress = self._progress = ReplyProgress(started_at=self._clock.monotonic())
        try:
            async with asyncio.timeout(self._timeout_s) as self._timeout:
                try:
                    if not await self._answer_in_speech(question, progress):
                        await self._answer_in_text(question, progress)
                except ContextOverflowError as error:
                    if question.may_skip:
                        progress.skip(error)
                    else:
                        await self._speak_refusal(error, progress)
        except TimeoutError:
            if not progress.stopped:
                _fail(question, progress, "time", TOO_SLOW)
        except CompactionError as error:
            # Session memory could not be read.
            _fail(question, progress, "context", error)
        except asyncio.CancelledError:
            # If this task itself was not cancelled, something that the reply awaited was cancelled. Then only this
            # reply is lost. Raised further, the error would end the replier silently, and the room would never get an
            # answer again.
            if is_being_cancelled():
                raise
            _fail(question, progress, "cancelled", BROKEN_OFF)
        finally:
            self._timeout = self._progress = self._sentences = None
            # After this, no sound of this reply is played. Pieces that were already played stay as they are.
            self._playback.stop()
        if progress.speech_to_speech and self._speech_to_speech is not None:
            self._report_heard(self._speech_to_speech, progress)
        return self._reply(question, progress)

    async def _answer_in_speech(self, question: Question, progress: ReplyProgress) -> bool:
        """Answer with speech-to-speech. Return False if the text pipeline has to answer instead."""
        direct = self._speech_to_speech
        if direct is None or not direct.usable:
            return False
        progress.speech_to_speech = True
        try:
            async with aclosing(direct.speak(question, forbids=self._output.check.forbids)) as stream:
                async for speech in stream:
                    if progress.model_first_token_ms is None:
                        progress.model_first_token_ms = elapsed_ms(progress.started_at, self._clock.monotonic())
                    if not await self._output.queue(speech, progress):
                        break
        except ForbiddenWordsError:
            # What is queued is not played either: it may be the beginning of the same sentence.
            self._output.check.report_blocked("word_list", progress)
            return True
        except RealtimeError as error:
            if not progress.pieces:
                # Nothing was heard yet, so the text pipeline answers. The bridge tells the channel if the failure
                # lasts.
                self._give_up_speech(direct, progress, error)
                if question.asker_id == "":
                    # Nobody waits for an unasked reply.
                    progress.skip(error)
                return progress.skipped
            if self._speech_to_speech is not None and self._speech_to_speech.usable:
                progress.fail("model", error)
            else:
                # The bridge tells the channel that it has failed, and why.
                log.warning("speech_to_speech_reply_broke_off", problem=error)
            # People listen to it and would wait for the rest.
            progress.model_pieces = len(progress.pieces)
            await self._output.say_broken_off(progress)
        if not progress.pieces and progress.failure is None and not progress.skipped:
            if not question.may_skip:
                # Models sometimes say nothing at all, and a provider may have filtered what they said.
                self._give_up_speech(direct, progress, "no_sound")
                return False
            progress.skip()
        await self._output.wait_until_played(progress)
        return True

    def _give_up_speech(self, direct: SpeechToSpeech, progress: ReplyProgress, problem: RealtimeError | str) -> None:
        """Leave a reply of which nothing was heard to the text pipeline. `problem`: for the log."""
        log.warning("speech_to_speech_reply_failed", problem=problem)
        progress.speech_to_speech = False
        direct.report_heard(0.0, complete=False)

    def _report_heard(self, direct: SpeechToSpeech, progress: ReplyProgress) -> None:
        """Tell the model how much of its reply was heard. A failed reply ends at its last played piece, even if the
        service keeps sending.
        """
        played = progress.played_of_model
        ended = not (progress.stopped or progress.dropped or progress.failure is not None)
        complete = ended and all(piece.complete for piece in played)
        direct.report_heard(sum(piece.played_s for piece in played), complete=complete)

    def _on_audio_queued(self) -> None:
        """Lift the time limit: from now on the length of the sound limits the reply."""
        if self._progress is not None and not self._progress.stopped:
            self._end_within(None)

    def _stop(self, progress: ReplyProgress) -> None:
        progress.stopped = True
        self._end_within(0.0)

    def _end_within(self, seconds: float | None) -> None:
        """Change how long the reply in progress may take from now on, unless its time is over. None: without limit."""
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)

    async def _speak_refusal(self, error: ContextOverflowError, progress: ReplyProgress) -> None:
        """Say aloud that the question is too large; the channel gets the numbers in writing."""
        sentences = new_sentence_queue()
        for item in (error, None):
            sentences.put_nowait(item)
        await self._output.speak(sentences, progress)
        await self._output.wait_until_played(progress)

    async def _answer_in_text(self, question: Question, progress: ReplyProgress) -> None:
        """Let the model answer and the voice speak. Raises `CompactionError`."""
        answer = await self._begin(question)
        async with sentences_of(answer, progress, self._clock, may_skip=question.may_skip) as self._sentences:
            await self._output.speak(self._sentences, progress)
        await self._output.wait_until_played(progress)

    def _reply(self, question: Question, progress: ReplyProgress) -> Reply:
        played = progress.played
        starts = [piece.first_frame_at for piece in played if piece.first_frame_at is not None]
        return Reply(
            question=question,
            text=joined_texts((piece.heard_text, piece.glued) for piece in played),
            interrupted=any(not piece.complete for piece in played),
            first_audio_at=min(starts, default=None),
            begun_at=progress.started_at,
            ended_at=self._clock.monotonic(),
            model_first_token_ms=progress.model_first_token_ms,
            synthesis_first_audio_ms=progress.synthesis_first_audio_ms,
            failure=progress.failure,
            unheard=progress.unheard,
            unsaid=" ".join(progress.unsaid),
            skipped=progress.skipped,
        )


def _fail(question: Question, progress: ReplyProgress, stage: str, problem: Exception | Text) -> None:
    """Note that a reply has failed. One that may be skipped is skipped, unless people have heard its beginning."""
    if question.may_skip and not progress.pieces:
        progress.dropped = True
        progress.skip(problem)
    else:
        progress.fail(stage, problem)
