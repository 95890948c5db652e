"""A preemptive reply: the model and the voice start before the end of the question is certain.

In a pause that sounds like the end or lasts, after a text that reads finished, the model gets the prompt as if the
question were complete, and the voice synthesises the first sentence of its answer. Nothing is played or recorded, and
no tool runs, before the end is certain; by then the first sound is ready. If the person goes on or says something else,
the reply is discarded. Its cost is counted all the same.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from bot.brain.skip import begins_with_skip, may_become_skip
from bot.brain.speech_output import broken_off
from bot.read_ahead import ReadAhead
from bot.texts.text import Text
from voice.cancellation import is_being_cancelled
from voice.errors import SynthesisError
from voice.speaking.sentences import SentenceSplitter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

    from bot.brain.context import ModelContext
    from bot.brain.reply import Question
    from bot.brain.responder import Responder
    from bot.brain.speech_output import SentenceReader
    from bot.clock import Clock
    from voice.speaking.port import AudioChunk, Synthesizer

log = structlog.get_logger()

# The failure of a sentence whose voice waited for something that was cancelled elsewhere.
VOICE_BROKE_OFF = Text("My voice broke off in the middle of a sentence. Ask me again.")


class RoomSynthesizer:
    """A `Synthesizer` of one room that may have begun with a sentence; it holds one at most.

    *Ownership*: the task group that `begin` is given owns the synthesis in progress.
    """

    def __init__(self, voice: Synthesizer) -> None:
        self._voice = voice
        # The sentence and its sound.
        self._begun: tuple[str, ReadAhead[AudioChunk]] | None = None

    def begin(self, text: str, tasks: asyncio.TaskGroup) -> None:
        """Begin to synthesise `text`, in place of what was begun before."""
        self.discard()
        # One sentence, of which a voice makes some minutes of sound at most (`voice.speaking.openai.MAX_SOUND_S`).
        sound = ReadAhead(self._voice.stream(text), tasks, name="speech-ahead", broken_off=_broken_off)
        self._begun = text, sound

    def discard(self) -> None:
        """Stop the synthesis in progress and drop its sound, if there is any."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun[1].cancel()

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield the sound of `text`; what is ready comes at once. See `Synthesizer.stream`."""
        begun = self._begun
        if begun is None or begun[0] != text:
            sounds = self._voice.stream(text)
        else:
            sounds, self._begun = begun[1].take(), None
        async with aclosing(sounds) as stream:
            async for sound in stream:
                yield sound


def _broken_off(error: asyncio.CancelledError) -> SynthesisError:
    """See `bot.brain.speech_output.broken_off`."""
    if is_being_cancelled():
        raise error
    return SynthesisError(VOICE_BROKE_OFF)


_FINISHED = re.compile(r"""[^.\s][.?!]["”’')\]]*$""")


@dataclass(slots=True, eq=False)
class _Attempt:
    """A reply that was begun. `built`: set when the context is built, or building it failed. `first_sentence`: what
    the voice has begun to synthesise; empty before the first sentence is complete.
    """

    question: Question
    begun_at: float
    reply: ReadAhead[str] = field(init=False)
    context: ModelContext | None = None
    built: asyncio.Event = field(default_factory=asyncio.Event)
    first_sentence: str = ""

    def fits(self, question: Question) -> bool:
        """Return whether the attempt replies to `question`: the same words of the same people, as the same turn, and
        in the same language, which the end of what somebody says may show.
        """
        own, turn = self.question, question.turn
        return (
            own.utterance_id == question.utterance_id
            and (own.turn.seq, own.turn.kind, own.turn.parts) == (turn.seq, turn.kind, turn.parts)
            and (own.asker_id, own.reason, own.may_skip) == (question.asker_id, question.reason, question.may_skip)
            and (own.unaided, own.language) == (question.unaided, question.language)
        )


class ReplySource:
    """The preemptive reply of one room; one at a time. The replier takes its answers from here.

    `speech` synthesises the first sentence; `new_reader` makes the voice speak the language of a
    question, and returns how the sentences of its reply are read aloud.
    *Ownership*: `run` is the room's task and owns the reply in progress; before it runs, no reply is begun.
    """

    def __init__(
        self,
        *,
        build_context: Callable[[Question], Awaitable[ModelContext]],
        responder: Responder,
        speech: RoomSynthesizer,
        new_reader: Callable[[Question], SentenceReader],
        clock: Clock,
    ) -> None:
        self._build_context = build_context
        self._responder = responder
        self._speech = speech
        self._new_reader = new_reader
        self._clock = clock
        self._tasks: asyncio.TaskGroup | None = None
        self._attempt: _Attempt | None = None
        # The attempt whose answer the replier has, until its reply is over.
        self._taken: _Attempt | None = None

    async def run(self) -> None:
        """Own the reply in progress. Never returns."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                await asyncio.Event().wait()
            finally:
                self._tasks = None

    def start(self, question: Question) -> None:
        """Begin to reply to a question that may not be complete. `question.turn` is not recorded yet."""
        if self._tasks is None or (self._attempt is not None and self._attempt.fits(question)):
            return
        self.discard("superseded")
        attempt = self._attempt = _Attempt(question, self._clock.monotonic())
        # A reply has a bound in characters, seconds and calls of tools, like each other one.
        attempt.reply = ReadAhead(self._reply(attempt), self._tasks, name="preemptive-reply", broken_off=broken_off)

    def discard_for(self, utterance_id: str) -> None:
        """Discard the reply to that utterance: the person has gone on speaking."""
        if self._attempt is not None and self._attempt.question.utterance_id == utterance_id:
            self.discard("went_on")

    def discard(self, reason: str) -> None:
        """Discard the reply in progress, if any. `reason`: for the log."""
        # Also what a reply has begun and did not use, because it was stopped.
        self._speech.discard()
        attempt = self._attempt
        if attempt is None:
            return
        self._attempt = None
        attempt.reply.cancel()
        log.info(
            "preemptive_reply_discarded",
            reason=reason,
            wasted_ms=self._since_ms(attempt),
            synthesised_chars=len(attempt.first_sentence),
        )

    def drop_taken(self) -> None:
        """Stop what was prepared for a reply and not used. Call it after each reply."""
        if self._taken is not None:
            self._taken.reply.cancel()
            self._speech.discard()
            self._taken = None

    async def begin(self, question: Question) -> AsyncGenerator[str, None]:
        """Return the pieces of the answer to `question`: those of the reply that was prepared, or of one that begins
        now. Raises `CompactionError`.
        """
        attempt = self._attempt
        if attempt is None or not attempt.fits(question):
            self.discard("another_question")
            return self._responder.respond(await self._build_context(question))
        self._attempt, self._taken = None, attempt
        await attempt.built.wait()
        if attempt.context is None:
            # Building it failed. Build it again, so that the error is reported in the usual way.
            return self._responder.respond(await self._build_context(question))
        if attempt.context.tools is not None:
            attempt.context.tools.released.set()
        log.info(
            "preemptive_reply_used",
            saved_ms=self._since_ms(attempt),
            synthesised_chars=len(attempt.first_sentence),
        )
        return attempt.reply.take()

    async def _reply(self, attempt: _Attempt) -> AsyncGenerator[str, None]:
        try:
            context = await self._build_context(attempt.question)
            if context.tools is not None:
                context.tools.released.clear()
            attempt.context = context
        finally:
            # Also if this task was cancelled: nobody may wait for it.
            attempt.built.set()
        splitter, read = SentenceSplitter(), self._new_reader(attempt.question)
        async with aclosing(self._responder.respond(context)) as stream:
            async for piece in stream:
                yield piece
                if not attempt.first_sentence:
                    self._begin_speech(attempt, splitter.feed(piece), read)
        if not attempt.first_sentence:
            self._begin_speech(attempt, splitter.flush(), read)

    def _begin_speech(self, attempt: _Attempt, sentences: Iterable[str], read: SentenceReader) -> None:
        """Begin to synthesise the first of these sentences that is spoken.

        The replier cuts and reads the same text itself. Where it comes to another sentence, this sound is not used.
        """
        assert self._tasks is not None, "an attempt runs in them"
        for sentence in sentences:
            if attempt.question.may_skip and (may_become_skip(sentence) or begins_with_skip(sentence)):
                return
            aloud = read(sentence)
            if aloud is not None:
                attempt.first_sentence = aloud
                self._speech.begin(aloud, self._tasks)
                return

    def _since_ms(self, attempt: _Attempt) -> float:
        return round(1000 * (self._clock.monotonic() - attempt.begun_at), 1)


def reads_finished(text: str) -> bool:
    """Return whether a text ends like a sentence. An ellipsis does not count."""
    return bool(_FINISHED.search(text.strip()))
