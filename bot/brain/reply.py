"""Carrying out an answer: model stream, sentences, voice, playback, and what was really heard of it.

One answer is in the works at a time and at most one question waits; a newer question takes the waiting one's
place. Whether to answer is decided in `decider`; this shell only carries out, times, and tells of failures.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

import structlog

from bot.llm.port import ChatModelError
from compaction.errors import CompactionError, ContextOverflowError
from voice.errors import RealtimeError, SynthesisError
from voice.speaking.moderation import ModerationError, WordList
from voice.speaking.sentences import SentenceSplitter
from voice.speaking.spoken import Spoken

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from bot.brain.context import ModelContext
    from bot.brain.responder import Responder
    from bot.clock import Clock
    from compaction.model import Turn
    from voice.speaking.moderation import Moderator
    from voice.speaking.playback import Playback, Played
    from voice.speaking.port import Speech, Synthesizer

    # A sentence to be spoken, what went wrong instead, or the end.
    _Item: TypeAlias = str | ChatModelError | ContextOverflowError | None

log = structlog.get_logger()

# Sentences a fast model may be ahead of the voice; more would be thought in vain if people speak on.
SENTENCES_AHEAD = 4
# Playback drains in real time. A piece that waits longer than this behind two others is not being played at all.
QUEUE_TIMEOUT_S = 60.0
# What the sender may lag behind the sound's own length before it counts as gone.
PLAYBACK_SLACK_S = 10.0

MODEL_FAILED = "Sorry, the language model did not answer."
TOO_MUCH = "That is more than I can take in at once. Ask me for less at a time."
TOO_SLOW = "I took too long over an answer and gave it up. Ask me again; `roomtone tail` shows what was slow."
BLOCKED = "I left out something that I must not say here."
NOT_PLAYED = "My answer did not get through to the voice channel. `/leave` and `/join` connect me anew."


@dataclass(frozen=True, slots=True)
class Question:
    """The turn to be answered; `utterance_id` is the speech it came from, `ended_at` when that ended (monotonic)."""

    turn: Turn
    utterance_id: str | None = None
    ended_at: float | None = None


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


class Direct(Protocol):
    """Somebody who answers in sound at once, without words to be spoken in between: speech-to-speech."""

    @property
    def usable(self) -> bool:
        """Return whether to ask at all."""

    def speak(self, question: Question) -> AsyncGenerator[Speech, None]:
        """Yield the answer as it comes. Raises `RealtimeError`, also after some pieces, and `CompactionError`."""

    def spoken(self, heard_s: float, *, complete: bool) -> None:
        """Take note of how much of the answer was heard. Called once after each `speak`."""


@dataclass(slots=True)
class _Progress:
    """What is known of the answer being carried out."""

    begun_at: float
    pieces: list[asyncio.Future[Played]] = field(default_factory=list)
    audio_s: float = 0.0
    unsaid: list[str] = field(default_factory=list)
    model_first_token_ms: float | None = None
    synthesis_first_audio_ms: float | None = None
    failure: str | None = None
    # Whether speech-to-speech was asked, and so must be told how far it was heard.
    direct: bool = False

    def fail(self, stage: str, sentence: str) -> None:
        """Note what failed, for the log and for the people; of several failures the last one is told to them."""
        log.error("reply_failed", stage=stage, problem=sentence)
        self.failure = sentence


class Replier:
    """Carries out answers one after the other. `run` is its task, owned by the room.

    `build_context` makes what the responder is given; `on_reply` gets each finished answer (also one of which
    nothing was heard). *Cancellation* of `run` falls silent at once; `hush` first, to keep what was heard.
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
        pronunciations: Mapping[str, str] | None = None,
        blocked_words: Sequence[str] = (),
        moderator: Moderator | None = None,
        direct: Direct | None = None,
    ) -> None:
        self._build_context = build_context
        self._responder = responder
        self._synthesizer = synthesizer
        self._playback = playback
        self._clock = clock
        self._timeout_s = timeout_s
        self._on_reply = on_reply
        self._pronunciations = pronunciations
        self._blocked_words = WordList(blocked_words)
        self._moderator = moderator
        self._direct = direct
        self._waiting: Question | None = None
        self._asked = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._scope: asyncio.Timeout | None = None
        self._hushed = False
        # Whether the answer in the works has been broken off, and whether none is that still has to be recorded.
        self._interrupted = False
        self._settled = asyncio.Event()
        self._settled.set()
        self._progress: _Progress | None = None

    @property
    def queued(self) -> bool:
        """Return whether a question waits behind the answer being spoken."""
        return self._waiting is not None

    @property
    def busy(self) -> bool:
        """Return whether an answer is in the works."""
        return not self._idle.is_set()

    @property
    def sounding(self) -> bool:
        """Return whether an answer is in the works that has begun to be spoken."""
        return self._progress is not None and bool(self._progress.pieces)

    def interrupt(self) -> None:
        """Break the answer in the works off: nothing more of it is thought or heard. What waits is answered next."""
        if self._scope is None or self._interrupted:
            return
        self._interrupted = True
        self._settled.clear()
        self._playback.stop()
        self._scope.reschedule(asyncio.get_running_loop().time())

    async def settled(self, *, within_s: float) -> None:
        """Wait until an answer that was broken off is recorded, so that what is said next comes after it."""
        try:
            async with asyncio.timeout(within_s):
                await self._settled.wait()
        except TimeoutError:
            log.warning("reply_not_recorded", within_s=within_s)

    def ask(self, question: Question) -> Question | None:
        """Take `question` on; return the waiting one whose place it took."""
        superseded, self._waiting = self._waiting, question
        self._idle.clear()
        self._asked.set()
        return superseded

    async def hush(self, *, within_s: float) -> None:
        """Fall silent, drop what waits, and let the interrupted answer be recorded, for `within_s` at most."""
        self._hushed = True
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
                if question is not None and not self._hushed:
                    await self._on_reply(await self._answer(question))
            finally:
                self._settled.set()
                if self._waiting is None:
                    self._idle.set()

    async def _answer(self, question: Question) -> Reply:
        progress = self._progress = _Progress(begun_at=self._clock.monotonic())
        self._interrupted = False
        try:
            async with asyncio.timeout(self._timeout_s) as self._scope:
                try:
                    if not await self._speak_directly(question, progress):
                        context = await self._build_context(question)
                        await self._think_and_speak(context, progress)
                except ContextOverflowError as error:
                    await self._refuse(error, progress)
        except TimeoutError:
            if not self._broken_off:
                progress.fail("time", TOO_SLOW)
        except CompactionError as error:
            # The memory could not be read.
            progress.fail("context", str(error))
        finally:
            self._scope = self._progress = None
            # However this ends, nothing of this answer may sound later. Pieces played out are not touched.
            self._playback.stop()
        if progress.direct and self._direct is not None:
            played = [piece.result() for piece in progress.pieces if piece.done() and not piece.cancelled()]
            complete = all(piece.complete for piece in played) and not self._broken_off
            self._direct.spoken(sum(piece.played_s for piece in played), complete=complete)
        return self._reply(question, progress)

    async def _speak_directly(self, question: Question, progress: _Progress) -> bool:
        """Let speech-to-speech answer; return whether it did, at least in part."""
        direct = self._direct
        if direct is None or not direct.usable:
            return False
        progress.direct = True
        try:
            async with aclosing(direct.speak(question)) as stream:
                async for speech in stream:
                    if progress.model_first_token_ms is None:
                        progress.model_first_token_ms = self._elapsed_ms(progress.begun_at)
                    if not await self._queue(speech, progress):
                        break
        except RealtimeError as error:
            if not progress.pieces:
                # Nothing was heard yet, so the answer comes the other way; whether for good is told elsewhere.
                log.warning("direct_reply_failed", problem=str(error))
                progress.direct = False
                direct.spoken(0.0, complete=False)
                return False
            progress.fail("model", str(error))
        await self._play_out(progress)
        return True

    async def _queue(self, speech: Speech, progress: _Progress) -> bool:
        """Queue a piece for playback; return whether playback takes more."""
        try:
            async with asyncio.timeout(QUEUE_TIMEOUT_S):
                progress.pieces.append(await self._playback.queue(speech))
        except TimeoutError:
            progress.fail("playback", NOT_PLAYED)
            return False
        progress.audio_s += len(speech.pcm) / speech.rate_hz
        if self._scope is not None and not self._broken_off:
            # It sounds: from here on the sound's own length is the bound.
            self._scope.reschedule(None)
        return True

    async def _refuse(self, error: ContextOverflowError, progress: _Progress) -> None:
        """Say aloud what to do about a question that is too much; the figures are written."""
        sentences: asyncio.Queue[_Item] = asyncio.Queue(SENTENCES_AHEAD)
        for item in (error, None):
            sentences.put_nowait(item)
        await self._speak(sentences, progress)
        await self._play_out(progress)

    async def _think_and_speak(self, context: ModelContext, progress: _Progress) -> None:
        sentences: asyncio.Queue[_Item] = asyncio.Queue(SENTENCES_AHEAD)
        async with asyncio.TaskGroup() as tasks:
            thinking = tasks.create_task(self._think(context, sentences, progress), name="think")
            await self._speak(sentences, progress)
            # After a failure of the voice there may be nobody left to take sentences.
            thinking.cancel()
        await self._play_out(progress)

    async def _think(self, context: ModelContext, sentences: asyncio.Queue[_Item], progress: _Progress) -> None:
        """Cut the responder's stream into sentences; a failure is handed on like one."""
        splitter = SentenceSplitter()
        try:
            async with aclosing(self._responder.respond(context)) as stream:
                async for piece in stream:
                    if progress.model_first_token_ms is None:
                        progress.model_first_token_ms = self._elapsed_ms(progress.begun_at)
                    for sentence in splitter.feed(piece):
                        await sentences.put(sentence)
            for sentence in splitter.flush():
                await sentences.put(sentence)
        except (ChatModelError, ContextOverflowError) as error:
            # What the model had begun to say is half a sentence: better left out.
            await sentences.put(error)
        await sentences.put(None)

    async def _speak(self, sentences: asyncio.Queue[_Item], progress: _Progress) -> None:
        """Speak of each sentence what can be spoken; the next is made while one plays."""
        spoken = Spoken(self._pronunciations)
        while (item := await sentences.get()) is not None:
            if not isinstance(item, str):
                overflow = isinstance(item, ContextOverflowError)
                progress.fail("context" if overflow else "model", str(item))
                if progress.pieces:
                    return
                item = TOO_MUCH if overflow else MODEL_FAILED
            said = spoken.piece(item)
            if said is None or not await self._may_say(said.text, progress):
                continue
            begun = self._clock.monotonic()
            try:
                speech = await self._synthesizer.synthesize(said.aloud)
            except SynthesisError as error:
                progress.unsaid.append(said.text)
                progress.fail("voice", str(error))
                continue
            if progress.synthesis_first_audio_ms is None:
                progress.synthesis_first_audio_ms = self._elapsed_ms(begun)
            # What is remembered is the text, not the way it is pronounced.
            if not await self._queue(replace(speech, text=said.text), progress):
                return

    async def _may_say(self, text: str, progress: _Progress) -> bool:
        """Return whether `text` may be spoken; if not, log why and let the people be told."""
        try:
            objection = "word_list" if self._blocked_words.forbids(text) else None
            if objection is None and self._moderator is not None:
                objection = await self._moderator.objection(text)
        except ModerationError as error:
            progress.fail("moderation", str(error))
            return False
        if objection is None:
            return True
        log.warning("sentence_blocked", reason=objection, char_count=len(text))
        progress.failure = BLOCKED
        return False

    async def _play_out(self, progress: _Progress) -> None:
        if not progress.pieces:
            return
        try:
            async with asyncio.timeout(progress.audio_s + PLAYBACK_SLACK_S):
                await asyncio.wait(progress.pieces)
        except TimeoutError:
            progress.fail("playback", NOT_PLAYED)

    def _reply(self, question: Question, progress: _Progress) -> Reply:
        played = [piece.result() for piece in progress.pieces if piece.done() and not piece.cancelled()]
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
        )

    @property
    def _broken_off(self) -> bool:
        return self._hushed or self._interrupted

    def _elapsed_ms(self, since: float) -> float:
        return round(1000 * (self._clock.monotonic() - since), 1)
