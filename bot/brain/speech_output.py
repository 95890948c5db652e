"""Speaks an answer: each sentence of the model is cleaned, moderated and synthesised while the one before it plays.

The model is read ahead of the voice. The outcome of each sentence is recorded in the `Reply`. `bot.brain.replier`
starts and ends replies.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.brain.question import may_skip
from bot.brain.reply import Reply, elapsed_ms
from bot.brain.reply_life import Ready
from bot.brain.responder import CutOffError, WithoutModel
from bot.brain.skip import drop_skipped
from bot.llm.port import NO_WORDS, ChatModelError
from bot.texts.text import Text, in_language, sentence_of
from compaction.errors import ContextOverflowError
from voice.cancellation import is_being_cancelled
from voice.errors import SynthesisError, UnreadableTextError
from voice.speaking.moderation import ModerationError, Moderator, WordList
from voice.speaking.port import AudioChunk, Speech, Synthesizer
from voice.speaking.sentences import SentenceSplitter
from voice.speaking.speech_rate import SpeechRate, words_after, words_until
from voice.speaking.text_normalizer import SpeakableText, TextNormalizer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence

    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from voice.speaking.playback import Playback, QueuedSpeech

    # A sentence to speak, or a failure in place of the rest.
    AnswerPart = str | ChatModelError | ContextOverflowError

log = structlog.get_logger()

# Playback takes pieces in real time. A piece that waits longer than this behind two others will not be played.
QUEUE_TIMEOUT_S = 60.0
# A sender that takes no sound for this long, while playback is not paused, counts as gone.
PLAYBACK_SLACK_S = 10.0

MODEL_FAILED = Text("Sorry, the language model did not answer.")
MODEL_BROKE_OFF = Text("Sorry, I lost the rest of my answer.")
BLOCKED = Text("I left something out, because I am not allowed to say it here.")
NOT_PLAYED = Text("My answer did not reach the voice channel. To connect me again, use /leave and then /join.")
NOT_ALOUD = Text(
    "I do not say my answer, because somebody has joined who is not allowed to know all of it. Ask me "
    "again when this person is gone."
)
NOT_WRITTEN = Text(
    "My voice cannot say my answer. I do not write it here, because not everybody who reads this "
    "chat is allowed to know it. Mention me in the chat and ask again."
)
# The failure of a reply that waited for something that was cancelled elsewhere.
BROKEN_OFF = Text("I could not finish my answer. Ask me again.")


async def sentences_of(
    answer: AsyncGenerator[str, None], reply: Reply, clock: Clock
) -> AsyncGenerator[AnswerPart, None]:
    """Yield the sentences of a responder's answer, with a failure in place of the rest. *Ownership*: closes `answer`.

    If the question may be skipped, the answer may be empty, and a failure before its first sentence is not told.
    """
    splitter, optional = SentenceSplitter(), may_skip(reply.question)
    try:
        async with (
            aclosing(answer) as stream,
            aclosing(drop_skipped(stream, reply) if optional else stream) as pieces,
        ):
            async for piece in pieces:
                if not isinstance(piece, WithoutModel):
                    reply.on_first_token(clock.monotonic())
                for sentence in splitter.feed(piece):
                    yield sentence
        rest: Iterable[str] = splitter.flush()
    except CutOffError as error:
        log.warning("reply_cut_off", problem=error)
        # An unfinished first sentence is spoken, since there is no other; an unfinished later one is dropped.
        rest = () if splitter.spoke else splitter.flush()
    except (ChatModelError, ContextOverflowError, asyncio.CancelledError) as error:
        failure = broken_off(error) if isinstance(error, asyncio.CancelledError) else error
        # The unfinished sentence is dropped.
        if optional and not splitter.spoke:
            reply.skip(failure)
        else:
            yield failure
        return
    for sentence in rest:
        yield sentence
    if not (splitter.spoke or optional):
        # Thoughts, code and tool calls are never spoken. Silence would look like a question that was not heard.
        yield ChatModelError(NO_WORDS, retryable=True)


def still_may_sound(reply: Reply) -> bool:
    """Return whether all who listen now may know what a reply tells. If not, it is given up, and the chat says why."""
    if not reply.may_be_heard():
        reply.give_up("company", NOT_ALOUD)
        return False
    return True


def broken_off(error: asyncio.CancelledError) -> ChatModelError:
    """Return the failure of a reply that waited for something that was cancelled elsewhere: without one, the room would
    wait for the rest of it. Raises `error` if the current task is being cancelled itself.
    """
    if is_being_cancelled():
        raise error
    return ChatModelError(BROKEN_OFF, retryable=True)


class ReadAhead:
    """A stream that a task of its own reads at once. *Ownership*: `tasks` owns the task; nothing that happens in the
    stream ends the group.
    """

    def __init__(self, stream: AsyncGenerator[str, None], tasks: asyncio.TaskGroup) -> None:
        # The items, an error if there was one, and None at the end. It has no size: who makes the stream bounds it, and
        # one that had to wait for its reader would not be ahead.
        self._items: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        self._begun = asyncio.Event()
        self._task = tasks.create_task(self._read(stream), name="generate-answer")

    def cancel(self) -> None:
        """Give the stream up; it ends."""
        self._task.cancel()

    async def comes_within(self, seconds: float) -> bool:
        """Wait for the first item, or the end, for so long. Return whether it is there."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._begun.wait()
        return self._begun.is_set()

    async def take(self) -> AsyncGenerator[str, None]:
        """Yield the stream from its beginning: what is ready at once, the rest as it comes. Raises its error. Call it
        once. *Cancellation*: closing the generator ends the stream.
        """
        try:
            while (item := await self._items.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.cancel()

    async def _read(self, stream: AsyncGenerator[str, None]) -> None:
        try:
            async with aclosing(stream):
                async for item in stream:
                    self._items.put_nowait(item)
                    self._begun.set()
        except asyncio.CancelledError as error:
            self._items.put_nowait(broken_off(error))
        except Exception as error:  # noqa: BLE001 - raised again in `take`, if the stream is wanted
            self._items.put_nowait(error)
        finally:
            # Also if this task was cancelled: nobody may wait for more.
            self._items.put_nowait(None)
            self._begun.set()


class ReplyVoice(Synthesizer, Protocol):
    """The voice of a room; `bot.conversation.room_voice` implements it."""

    @property
    def language(self) -> str:
        """Return the code of the language that it speaks now; empty if that is not known."""

    def prefer(self, language: str) -> None:
        """Speak the next sentences as those of this language, by its code; empty: as those of the room."""


@dataclass(frozen=True)
class SpeechRules:
    """What the bot may say or write in `channel`, and how `voice` reads it.

    `own_names`: returns the names before a colon at the start of a reply that are not read. `pronunciations`: written
    word -> how it is spoken. `moderator`: asked about each sentence, after `blocked_words`.
    """

    channel: RoomChannel
    voice: ReplyVoice
    own_names: Callable[[], Sequence[str]] = tuple
    pronunciations: Mapping[str, str] = field(default_factory=dict)
    blocked_words: Sequence[str] = ()
    moderator: Moderator | None = None

    @cached_property
    def _word_list(self) -> WordList:
        return WordList(self.blocked_words)

    def new_normalizer(self) -> TextNormalizer:
        """Return what makes sentences of one reply out of a model's text, in order."""
        return TextNormalizer(self.pronunciations, own_names=self.own_names(), language=self.voice.language)

    def forbids(self, text: str) -> bool:
        """Return whether `text` has a word that the bot does not use on this server."""
        return self._word_list.forbids(text)

    async def allows(self, text: str, reply: Reply) -> bool:
        """Return whether people may get `text`. If not, log why and note it for the channel."""
        try:
            objection = "word_list" if self.forbids(text) else None
            if objection is None and self.moderator is not None:
                objection = await self.moderator.objection(text)
        except ModerationError as error:
            reply.fail("moderation", error)
            return False
        if objection is not None:
            self.report_blocked(objection, reply)
        return objection is None

    def report_blocked(self, reason: str, reply: Reply) -> None:
        """Log that a part of the reply is left out, and have the channel told. `reason`: in a word or two."""
        log.warning("sentence_blocked", reason=reason)
        reply.failure = BLOCKED


class SpeechOutput:
    """Moderation, synthesis and playback of sentences, one for each room."""

    def __init__(self, playback: Playback, clock: Clock, rules: SpeechRules) -> None:
        self._playback = playback
        self._clock = clock
        self._rules = rules
        self._rate = SpeechRate()

    async def speak(self, answer: AsyncGenerator[AnswerPart, None], reply: Reply) -> None:
        """Speak the sentences of an answer. Each is synthesised while the one before it plays."""
        normalizer = self._rules.new_normalizer()
        async with aclosing(answer):
            async for item in answer:
                if not isinstance(item, str):
                    await self.apologise(item, reply)
                    return
                sentence = normalizer.normalize(item)
                if sentence is None or not await self._rules.allows(sentence.text, reply):
                    continue
                if not await self._say(sentence, reply):
                    return

    async def say_filler(self, text: str, reply: Reply) -> None:
        """Say a sentence before the answer that is no part of it."""
        sentence = self._rules.new_normalizer().normalize(text)
        if sentence is not None:
            await self._say(sentence, reply)
            reply.fillers = len(reply.pieces)

    async def apologise(self, error: Exception | None, reply: Reply) -> None:
        """Note a failure, and say in a fixed sentence that the answer or its rest is lost. None: told elsewhere."""
        if error is not None:
            reply.fail("context" if isinstance(error, ContextOverflowError) else "model", error)
        lost = MODEL_BROKE_OFF if len(reply.pieces) > reply.fillers else MODEL_FAILED
        failed = sentence_of(error) if isinstance(error, ContextOverflowError) else lost
        sentence = self._rules.new_normalizer().normalize(in_language(failed, self._rules.channel.language))
        if sentence is not None:
            await self._say(sentence, reply)

    async def _say(self, sentence: SpeakableText, reply: Reply) -> bool:
        """Speak one sentence; it plays while the rest of it is synthesised. Return whether playback accepts more."""
        # The turn records the text, not its pronunciation.
        piece = await self._open_piece(sentence.text, reply, expected_s=self._rate.duration_s(sentence.aloud))
        if piece is None:
            return False
        started, spoken_s = self._clock.monotonic(), 0.0
        try:
            async with aclosing(self._rules.voice.stream(sentence.aloud)) as stream:
                async for sound in stream:
                    piece.add(sound)
                    reply.handle(Ready())
                    spoken_s += sound.duration_s
                    if reply.synthesis_first_audio_ms is None:
                        reply.synthesis_first_audio_ms = elapsed_ms(started, self._clock.monotonic())
                    if piece.done not in reply.pieces:
                        reply.add(piece.done)
        except SynthesisError as error:
            problem: Exception | Text = error
            if reply.may_be_read():
                reply.unsaid = f"{reply.unsaid} {words_after(sentence.text, error.spoken_share)}".strip()
            else:
                log.warning("answer_not_written", problem=error)
                problem = NOT_WRITTEN
            # A voice that cannot read a script works otherwise, and people read what it would have said.
            reply.fail("script" if isinstance(error, UnreadableTextError) else "voice", problem)
            piece.end(text=words_until(sentence.text, error.spoken_share))
        else:
            piece.end()
            self._rate.learn(sentence.aloud, spoken_s)
        return True

    async def _open_piece(
        self, text: str, reply: Reply, *, expected_s: float = 0.0, glued: bool = False
    ) -> QueuedSpeech | None:
        """Return a piece in the playback queue, or None if playback does not advance or the reply was stopped.

        The first one of a reply that is not released yet is held, and no other is opened before the release.
        """
        if reply.opened:
            await reply.until_released()
        held = reply.life.held
        try:
            async with asyncio.timeout(QUEUE_TIMEOUT_S):
                piece = await self._playback.open(text, expected_s=expected_s, glued=glued, held=held)
        except TimeoutError:
            reply.fail("playback", NOT_PLAYED)
            return None
        reply.opened.append(piece)
        if held and not reply.life.held:
            self.admit(reply)
        if reply.stopped:
            # The interruption made room, and the reply is cancelled only in the next turns of the event loop.
            piece.end()
            return None
        if not still_may_sound(reply):
            piece.end()
            return None
        return piece

    def admit(self, reply: Reply) -> None:
        """Let the sound of a reply that was held play, unless somebody has come who may not know it."""
        if not still_may_sound(reply):
            self.drop(reply)
            return
        for piece in reply.opened:
            self._playback.admit(piece)

    def drop(self, reply: Reply) -> None:
        """Play no more of a reply."""
        for piece in reply.opened:
            self._playback.stop_one(piece.done)

    async def queue(self, speech: Speech, reply: Reply) -> bool:
        """Queue finished sound. Return whether playback accepts more."""
        piece = await self._open_piece(speech.text, reply, glued=speech.glued)
        if piece is None:
            return False
        piece.add(AudioChunk(speech.pcm, speech.rate_hz))
        piece.end()
        reply.add(piece.done)
        return True

    async def wait_until_played(self, reply: Reply) -> None:
        """Wait until everything queued has been played, however often barge-in pauses it."""
        if reply.pieces:
            await reply.until_released()
        waiting = set(reply.pieces)
        while waiting:
            moves = self._playback.activity_count
            _, waiting = await asyncio.wait(waiting, timeout=PLAYBACK_SLACK_S)
            if waiting and self._playback.activity_count == moves and not self._playback.paused:
                reply.fail("playback", NOT_PLAYED)
                return
