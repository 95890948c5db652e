"""Produces replies: each is generated and spoken (`speech_output`), and recorded as far as it was heard.

One reply is in progress at a time, and at most one question waits; a newer question replaces it. Besides, one reply to
speech that may go on may be held: its context, words and first sound are made, and nothing of it is played or recorded
and no tool runs before its release. Its cost is counted whatever becomes of it. `reply_life` says what that may be, and
`unanswered` keeps the question of a reply that was stopped too early. `decider` decides whether the bot answers at all.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, nullcontext
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.background_task import background_task
from bot.brain.question import CallResult, DueReminder, Question, Remark, Spoken, language_of, may_skip
from bot.brain.reply import Lapse, Reply, elapsed_ms
from bot.brain.reply_life import Fate, MaySound, Ready, ReplyAct, ReplyStage, Stop, Stopped, Withdrawn
from bot.brain.speech_output import ReadAhead, SpeechOutput, SpeechRules, broken_off, sentences_of, still_may_sound
from bot.brain.unanswered import UnansweredQuestions
from bot.texts.text import OperatorText, Text, in_language
from bot.words import SESSION, Words
from compaction.errors import CompactionError, ContextOverflowError
from voice.errors import RealtimeError
from voice.listening.pause import PauseVerdict
from voice.queue_figures import QueueFigures
from voice.speaking.moderation import ForbiddenWordsError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from bot.brain.context import ModelContext
    from bot.brain.heard_sign import HeardSign
    from bot.brain.responder import Responder
    from bot.brain.tools.toolbox import UntilWanted
    from bot.clock import Clock
    from voice.speaking.barge_in import Answering
    from voice.speaking.playback import Playback
    from voice.speaking.port import Speech

log = structlog.get_logger()

# Said if a model keeps somebody waiting for longer.
ONE_MOMENT = Text("One moment.")
ONE_MOMENT_AFTER_S = 3.0
# How often to look whether a question is over, for a call that acts outside.
LOOK_EVERY_S = 0.1
TOO_SLOW = OperatorText(
    "I took too long over an answer and gave it up. Ask me again; `roomtone tail` shows what was slow.",
    Text("I needed too long for my answer, so I stopped. Ask me again."),
)


class SpeechToSpeech(Protocol):
    """A speech-to-speech model, which answers with sound instead of text."""

    @property
    def usable(self) -> bool:
        """Return whether the model can answer now."""

    def speak(self, reply: Reply, rules: SpeechRules, until_wanted: UntilWanted) -> AsyncGenerator[Speech, None]:
        """Yield a reply as it arrives; nothing if the model skips it. Raises `CompactionError` and `RealtimeError`,
        also after some pieces, and `ForbiddenWordsError` before the sound of words that `rules` forbid. The reply gets
        its tools, whose calls wait for `until_wanted`.
        """

    def report_heard(self, heard_s: float, *, complete: bool, counts: bool) -> None:
        """Tell the model how many seconds of the reply were heard. Called once after each `speak`. `counts`: what was
        heard becomes a turn.
        """


class Replier:
    """Produces the replies of one room. `run` is its task, owned by the room.

    `build_context`: makes the prompt of a question, which `responder` answers. `on_reply`: gets each finished reply,
    also one that nobody heard. `words`: those of the session. `sign`: given while people wait; None: none is.

    *Cancellation* of `run` stops speech at once; call `shut_down` first, so that the heard part is recorded.
    """

    def __init__(
        self,
        *,
        build_context: Callable[[Question], Awaitable[ModelContext]],
        responder: Responder,
        playback: Playback,
        clock: Clock,
        timeout_s: float,
        on_reply: Callable[[Reply], Awaitable[None]],
        rules: SpeechRules,
        words: Words,
        speech_to_speech: SpeechToSpeech | None = None,
        sign: HeardSign | None = None,
    ) -> None:
        self._build_context = build_context
        self._responder = responder
        self._playback = playback
        self._clock = clock
        self._timeout_s = timeout_s
        self._on_reply = on_reply
        self._rules = rules
        self._speech_to_speech = speech_to_speech
        self._sign = sign
        self._output = SpeechOutput(playback, clock, rules)
        self._tasks: asyncio.TaskGroup | None = None
        # The question that is answered when the reply in progress has ended.
        self.waiting: Question | None = None
        self._superseded = 0
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        # Clear from the interruption of a reply until it is recorded.
        self._recorded = asyncio.Event()
        self._recorded.set()
        self._shut_down = False
        self._current: Reply | None = None
        self._held: Reply | None = None
        self._words = words
        self.unanswered = UnansweredQuestions(words)
        self._begin_lease()

    def _begin_lease(self) -> None:
        """Drop the replies in progress, held and waiting when words are taken back: they were made from the memory as
        it was.
        """
        self._lease = self._words.lease({SESSION}, since=None)
        self._lease.on_end(self._on_taken_back)

    def _on_taken_back(self) -> None:
        self._begin_lease()
        self.cancel_all("memory_changed")

    @property
    def queue(self) -> QueueFigures:
        """Return the question that waits."""
        return QueueFigures("answer", int(self.waiting is not None), 1, {"superseded": self._superseded})

    @property
    def busy(self) -> bool:
        """Whether a reply is in progress or a question waits. A held reply does not count."""
        return not self._idle.is_set()

    @property
    def answers_in_speech(self) -> bool:
        """Return whether speech-to-speech answers now, which takes only what is over."""
        return self._speech_to_speech is not None and self._speech_to_speech.usable

    @property
    def speaking(self) -> bool:
        """Whether speech of the reply in progress has started, and was not stopped."""
        return self._current is not None and bool(self._current.pieces) and not self._current.stopped

    @property
    def answering(self) -> Answering | None:
        """Return the spoken question that is being answered; None: there is none, or its answer was stopped."""
        reply = self._current
        return None if reply is None or reply.stopped else reply.answering

    def stop_current(self, by: Stop) -> None:
        """Stop the reply in progress at once; the waiting question is answered next. Its own question is kept where its
        answer gave way or is owed. `by`: why.
        """
        reply = self._current
        if reply is None:
            return
        is_unanswered = by in {Stop.WENT_ON, Stop.TALKED_OVER}
        # A speech-to-speech model answers the last thing that it heard, so it cannot be asked for an earlier answer.
        is_never_owed = reply.speech_to_speech or isinstance(reply.question, Remark)
        if is_unanswered and (self._shut_down or (by is Stop.TALKED_OVER and is_never_owed)):
            # Nothing is answered afterwards, so what was heard counts.
            by, is_unanswered = Stop.INTERRUPTED, False
        if reply.handle(Stopped(by)) is ReplyAct.SILENCE:
            self._recorded.clear()
            # A reminder that nobody heard is told again by itself.
            if is_unanswered and isinstance(reply.question, Spoken | CallResult):
                self.unanswered.keep(reply.question, now=self._clock.monotonic())
            reply.end_at(asyncio.get_running_loop().time())
            self._playback.stop()

    def on_joined(self) -> None:
        """Stop the reply in progress if somebody has come who may not know what it tells."""
        reply = self._current
        if reply is None or reply.stopped or reply.skipped or (reply.task is not None and reply.task.done()):
            return
        if not still_may_sound(reply):
            self.stop_current(Stop.SILENCED)

    def cancel_all(self, reason: str) -> None:
        """Stop the reply in progress at once, and discard the waiting question and the held reply. For a request to be
        silent, or because memory has changed. `reason`: for the log.
        """
        self.waiting = None
        self.unanswered.clear()
        self.withdraw(reason)
        self.stop_current(Stop.SILENCED)

    async def wait_until_recorded(self, *, within_s: float) -> None:
        """Wait up to `within_s` until an interrupted reply is recorded, so that the next turn follows it."""
        await _wait(self._recorded, within_s)

    def ask(self, question: Question) -> None:
        """Queue `question`, in place of the one that waits, if any. A reply to it that has begun is its reply."""
        if self.settle(question):
            return
        self._superseded += self.waiting is not None
        self.waiting = question
        self._idle.clear()
        self._wanted.set()

    def begun_by(self, user_id: int, *, ended_at: float) -> Spoken | None:
        """Return the question that this person continues with what they said until `ended_at` (monotonic seconds): its
        answer was stopped for that, or has not begun. None: they say something new.
        """
        waiting = self.waiting
        if isinstance(waiting, Spoken) and waiting.asker_id == user_id:
            return waiting
        return self.unanswered.continued_by(user_id, ended_at=ended_at)

    def settle(self, question: Question) -> bool:
        """Return whether the reply in progress is to `question`, which is a turn now."""
        released = self.released
        if self._current is None or released is None or not isinstance(question, Spoken):
            return False
        if is_to_it := released.utterance_id == question.utterance_id:
            self._current.ask(question)
        return is_to_it

    # -- the reply to speech that may go on ------------------------------------------------------------------

    def hold(self, question: Spoken) -> bool:
        """Begin the reply to a question that may not be complete, unless it has begun; `question.turn` is not recorded
        yet. Return False if another one comes first.
        """
        held = self._held
        if held is not None and question.is_same_as(held.question):
            return True
        is_stopping = self._current is not None and self._current.stopped and self.waiting is None
        if (self.busy and not is_stopping) or self._tasks is None or self._shut_down:
            return False
        if held is not None:
            if not held.answers_speech(question.utterance_id):
                return False
            self.withdraw("superseded")
        self._held = self._begin(question)
        return True

    def release(self) -> PauseVerdict:
        """Let the held reply sound; from now on it is the one in progress. Return HELD if it is not ready, or another
        one is in progress; DUE if it goes on without a sound: it waited for this to call a tool, or it has failed.
        """
        reply = self._held
        if reply is None or reply.stage is not ReplyStage.READY or self.busy:
            return PauseVerdict.HELD
        self._held, self._current = None, reply
        self._log_use(reply)
        self._idle.clear()
        self._wanted.set()
        has_sound = bool(reply.pieces)
        self._do(reply, reply.handle(MaySound()))
        return PauseVerdict.SOUNDING if has_sound else PauseVerdict.DUE

    def stage_of(self, utterance_id: str) -> ReplyStage | None:
        """Return how far the reply to an utterance is that is no turn yet; None: there is no such reply."""
        reply = self._unasked(utterance_id)
        return None if reply is None else reply.stage

    @property
    def released(self) -> Spoken | None:
        """Return the question whose reply sounds or may, although it is no turn yet; None: there is none."""
        reply = self._current
        return None if reply is None or reply.life.asked else reply.spoken

    def withdraw(self, reason: str, *, utterance_id: str | None = None) -> None:
        """Drop the reply to speech that goes on, as if it had never begun. `utterance_id`: only a reply to that, also
        if it sounds; None: any that is held. `reason`: for the log.
        """
        reply = self._held if utterance_id is None else self._unasked(utterance_id)
        if reply is not None and reply.handle(Withdrawn()) is ReplyAct.DROP:
            self._do(reply, ReplyAct.DROP)
            self._held = None if reply is self._held else self._held
            log.info("reply_withdrawn", reason=reason, wasted_ms=elapsed_ms(reply.begun_at, self._clock.monotonic()))

    def _unasked(self, utterance_id: str) -> Reply | None:
        begun = (reply for reply in (self._held, self._current) if reply is not None and not reply.life.asked)
        return next((reply for reply in begun if reply.answers_speech(utterance_id)), None)

    def _do(self, reply: Reply, act: ReplyAct | None) -> None:
        match act:
            case ReplyAct.PLAY:
                self._output.admit(reply)
            case ReplyAct.DROP:
                if reply.task is not None:
                    reply.task.cancel()
                self._output.drop(reply)

    # -- making replies --------------------------------------------------------------------------------------

    def answer_nothing_more(self) -> None:
        """Let the reply in progress be the last one."""
        self._shut_down = True

    async def shut_down(self, *, within_s: float) -> None:
        """Stop the reply in progress, answer nothing more, and wait up to `within_s` until the reply is recorded. Call
        it once, before cancelling `run`.
        """
        self.answer_nothing_more()
        self.cancel_all("shut_down")
        await _wait(self._idle, within_s)

    async def run(self) -> None:
        """Answer questions, for ever."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                while True:
                    await self._wanted.wait()
                    self._wanted.clear()
                    await self._answer_next()
            finally:
                self._tasks = None

    async def _answer_next(self) -> None:
        """Finish the reply that was released, or else make that to the question that waits."""
        reply = self._current = self._current or self._next()
        try:
            if reply is not None:
                await self._finish(reply)
        finally:
            self._current = None
            self._recorded.set()
            (self._idle if self.waiting is None else self._wanted).set()

    def _next(self) -> Reply | None:
        """Return the reply to the question that waits: the held one, or one that begins now."""
        question, self.waiting = self.waiting, None
        if question is None or self._shut_down:
            return None
        held, self._held = self._held, None
        if held is not None and isinstance(question, Spoken) and question.is_same_as(held.question):
            self._log_use(held)
            reply = held
        else:
            self._held = held
            self.withdraw("another_question")
            reply = self._begin(question)
        self._do(reply, reply.ask(question))
        return reply

    def _log_use(self, reply: Reply) -> None:
        log.info("held_reply_used", saved_ms=elapsed_ms(reply.begun_at, self._clock.monotonic()))

    async def _finish(self, reply: Reply) -> None:
        """Wait until a reply is over and its question recorded, and pass it on."""
        assert reply.task is not None, "it has begun"
        # `wait` and not `await`: a withdrawn reply is cancelled, which must not look like our own cancellation.
        await asyncio.wait({reply.task})
        if not reply.task.cancelled():
            reply.task.result()
        await reply.settled.wait()
        if reply.stage is ReplyStage.WITHDRAWN:
            return
        if reply.life.sentences:
            self.unanswered.on_answered(reply.question, goes_on=reply.life.stop is Stop.WENT_ON)
        if (fate := reply.life.fate) is not Fate.RECORDED:
            log.info("reply_gave_way", outcome=fate.name.lower(), words=reply.heard_words)
        await self._on_reply(reply)

    def _begin(self, question: Question) -> Reply:
        assert self._tasks is not None, "the room runs"
        reply = Reply(question, self._clock.monotonic(), self._lease)
        reply.task = self._tasks.create_task(self._make(reply), name="reply")
        return reply

    async def _make(self, reply: Reply) -> None:
        """Generate and speak a reply, until it is over."""
        question, sign = reply.question, self._sign
        self._rules.voice.prefer(language_of(question))
        try:
            # The limit is left last: from then on nothing may be awaited before it is forgotten.
            async with (
                asyncio.timeout(self._timeout_s) as reply.limit,
                nullcontext() if sign is None else background_task(sign.accompany(reply), name="heard-sign"),
            ):
                try:
                    if not (reply.life.asked and await self._answer_in_speech(reply)):
                        await self._answer_in_text(reply)
                except ContextOverflowError as error:
                    if may_skip(question):
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
            reply.limit = None
            # After this, no sound of this reply is played. Pieces that were already played stay as they are.
            self._output.drop(reply)
            if not reply.skipped:
                # If it is over without a sound, people are told why.
                reply.handle(Ready())
            reply.conclude(self._clock.monotonic())
        if reply.speech_to_speech and self._speech_to_speech is not None:
            # A failed reply ends at its last played piece, even if the service keeps sending.
            played = reply.played(reply.model_pieces)
            broke_off = reply.stopped or reply.lapse is Lapse.DROPPED or reply.failure is not None
            complete = not broke_off and all(piece.complete for piece in played)
            heard_s, counts = sum(piece.played_s for piece in played), reply.life.fate is Fate.RECORDED
            self._speech_to_speech.report_heard(heard_s, complete=complete, counts=counts)

    async def _answer_in_text(self, reply: Reply) -> None:
        """Have the language model answer, and speak its words, or those that the question has for it."""
        if isinstance(reply.question, DueReminder):
            said = sentences_of(_as_written(reply.question.says), reply, self._clock)
            await self._output.speak(said, reply)
            return
        context = await self._build_context(reply.question)
        reply.tools = context.tools
        reply.tools.until_wanted = self._gate_of(reply)
        # It is read at once, so that a tool that it calls does not wait for the words before it.
        async with asyncio.TaskGroup() as tasks:
            ahead = ReadAhead(self._responder.respond(context), tasks)
            if not (may_skip(reply.question) or await ahead.comes_within(ONE_MOMENT_AFTER_S)):
                # With it the reply begins to sound, so its time limit ends.
                moment = in_language(ONE_MOMENT, context.language or context.channel_language)
                await self._output.say_filler(moment, reply)
            await self._output.speak(sentences_of(ahead.take(), reply, self._clock), reply)

    def _gate_of(self, reply: Reply) -> UntilWanted:
        """Return what the calls of a reply wait for. One that acts outside waits until the question is surely over: its
        asker might go on, and what was done could not be taken back.
        """

        async def until_wanted(*, acts: bool) -> None:
            await reply.until_released()
            while acts and not reply.life.sentences:
                answering = reply.answering
                # A reply that was stopped calls nothing more: it ends here.
                is_unsure = reply.stopped or self._playback.paused
                if answering is None or not (is_unsure or answering.may_go_on(self._clock.monotonic())):
                    return
                await self._clock.sleep(LOOK_EVERY_S)

        return until_wanted

    async def _answer_in_speech(self, reply: Reply) -> bool:
        """Answer with speech-to-speech. Return False if the text pipeline has to answer instead."""
        direct, question = self._speech_to_speech, reply.question
        if direct is None or not direct.usable or isinstance(question, DueReminder):
            return False
        reply.speech_to_speech = True
        # Models sometimes say nothing at all, and a provider may have filtered what they said.
        problem: RealtimeError | str = "no_sound"
        try:
            async with aclosing(direct.speak(reply, self._rules, self._gate_of(reply))) as stream:
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
        if problem == "no_sound" and may_skip(question):
            reply.skip()
            return True
        log.warning("speech_to_speech_reply_failed", problem=problem)
        reply.speech_to_speech = False
        direct.report_heard(0.0, complete=False, counts=False)
        if isinstance(question, Remark):
            reply.skip()
        return reply.skipped


async def _as_written(text: str) -> AsyncGenerator[str, None]:
    yield text


async def _wait(recorded: asyncio.Event, within_s: float) -> None:
    try:
        async with asyncio.timeout(within_s):
            await recorded.wait()
    except TimeoutError:
        log.warning("reply_not_recorded", within_s=within_s)
