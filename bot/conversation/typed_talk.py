"""Typed talk: what people type to the bot, or say in a voice message, becomes a turn and is answered there in writing.

The answer comes from the same memory, prompt, rules and ceilings as a spoken one. One is written at a time, beside what
the bot says; a few wait. Which messages are for the bot decides `bot.discord.typed_messages`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING

import structlog

from bot.background_task import owned_task
from bot.brain.question import CallResult, Question, Typed
from bot.brain.replier import TOO_SLOW
from bot.brain.reply import Reply
from bot.brain.speech_output import SpeechRules, sentences_of
from bot.brain.tools.frozen_calls import PLACES as CALLS
from bot.brain.tools.frozen_calls import FrozenCall
from bot.channel.markdown import escape_markdown
from bot.errors import BotError
from bot.llm.port import NO_WORDS
from bot.places import Places
from bot.texts.text import Text, joined, sentence_of, verbatim
from bot.words import SESSION, Lease, Leased
from compaction.errors import CompactionError
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bot.brain.responder import Responder
    from bot.channel.port import Person, RoomChannel, TypedMessage
    from bot.clock import Clock
    from bot.conversation.prompt import PromptBuilder
    from bot.conversation.turn_recorder import ReplyRecorder, TurnRecorder
    from bot.conversation.voice_messages import VoiceMessages
    from bot.participation.participation import Participation
    from compaction.model import Turn

log = structlog.get_logger()

# A reader waits longer than a listener, and gets the whole answer at once.
ANSWER_S = 60.0
NOT_HEARD = Text(
    "I am not allowed to hear you here, so I did not listen to your voice message. To change this, "
    "use /opt-in or press *Hear me*."
)
COME_IN = Text("First join my voice channel. Then I can answer you here.")
MUCH_ASKED = Text(
    "You have sent me as many questions as one person can send in an hour. Ask me aloud, or ask me later."
)
PLACES = Places(
    4,
    2,
    full=Text("I have too many questions to answer. Ask me again in a minute."),
    full_for_one=Text("I am still answering your last messages. Ask me this again after that."),
)


class TypedTalk:
    """The typed talk of one room. `prompts`: made for each question, which `responder` answers.

    *Ownership*: the conversation runs `run`. *Cancellation* of `run`: answers that are not posted are lost.
    """

    def __init__(
        self,
        channel: RoomChannel,
        *,
        participation: Participation,
        turn_recorder: TurnRecorder,
        reply_recorder: ReplyRecorder,
        prompts: PromptBuilder,
        responder: Responder,
        rules: SpeechRules,
        voice_messages: VoiceMessages,
        clock: Clock,
    ) -> None:
        self._channel = channel
        self._participation = participation
        self._turn_recorder = turn_recorder
        self._reply_recorder = reply_recorder
        self._prompts = prompts
        self._responder = responder
        self._rules = rules
        self._voice_messages = voice_messages
        self._clock = clock
        # `PLACES` bounds the messages, and `CALLS` the results of calls.
        self._waiting: deque[Leased[tuple[Question, TypedMessage]]] = deque()
        self._wanted = asyncio.Event()
        self._answering: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def queue(self) -> QueueFigures:
        """Return how many messages wait for an answer."""
        return QueueFigures("typed", len(self._waiting), PLACES.most + CALLS.most)

    async def take(self, message: TypedMessage) -> Text | None:
        """Record a message as a turn and have it answered; return why it is not answered, or None.

        Of somebody who may not be heard nothing is recorded, and they get no answer. Who is not in the voice channel
        may not read what is said there, so they get none either.
        """
        person, asked_at = message.person, self._clock.monotonic()
        recording = message.recording
        if self._closed or self._participation.words.excludes(person.id):
            return NOT_HEARD if recording is not None and recording.to_bot and not self._closed else None
        if not self._is_there(person):
            return COME_IN if recording is None or recording.to_bot else None
        text = message.text
        if recording is not None:
            try:
                text = await self._voice_messages.text_of(person.id, recording)
            except BotError as error:
                return sentence_of(error)
            if self._may_not_use(person, asked_at):
                return None
            if not self._is_there(person):
                return COME_IN
        turn = await self._turn_recorder.record_typed(person, text)
        if self._may_not_use(person, asked_at):
            return None
        self._participation.on_typed(person.id, text)
        if (why := self._participation.why_unanswered()) is not None:
            return why
        # What was taken back takes no place.
        waiting = [(each, asked[1].person.id) for each in self._waiting if (asked := each.take()) is not None]
        self._waiting = deque(each for each, _ in waiting)
        refusal = PLACES.refusal([asker_id for _, asker_id in waiting], person.id)
        if refusal is None and not self._participation.may_ask(person.id):
            refusal = MUCH_ASKED
        if refusal is None:
            self._wait(Typed(turn, message), message)
        return refusal

    def _is_there(self, person: Person) -> bool:
        """Return whether somebody is in the voice channel now."""
        return any(each.id == person.id for each in self._channel.members())

    def _may_not_use(self, person: Person, asked_at: float) -> bool:
        """Return whether somebody has opted out or was forgotten while their message was recognised or stored."""
        return self._closed or not self._participation.words.may_use(person.id, since=asked_at)

    def report_result(self, call: FrozenCall, message: TypedMessage, last_turn: Turn | None) -> None:
        """Write below a message what came of the call for which its author has pressed. `last_turn`: of the session.

        Who has left the channel, or may not be heard any more, is told nothing.
        """
        if last_turn is None or self._closed:
            return
        if self._is_there(message.person) and self._participation.why_unanswered() is None:
            self._wait(CallResult(last_turn, call), message)

    def _wait(self, question: Question, message: TypedMessage) -> None:
        """Let a question wait for its answer below a message."""
        self._waiting.append(Leased((question, message), self._participation.words.lease({SESSION}, since=None)))
        self._wanted.set()

    def drop(self) -> None:
        """Drop what waits and the answer in progress."""
        self._waiting.clear()
        if self._answering is not None:
            self._answering.cancel()

    def close(self) -> None:
        """Take and answer nothing more: the room ends."""
        self._closed = True
        self.drop()

    async def run(self) -> None:
        """Answer one message after the other. Never returns."""
        while True:
            if not self._waiting:
                self._wanted.clear()
                await self._wanted.wait()
                continue
            asked = self._waiting.popleft()
            if (taken := asked.take()) is None:
                continue
            async with owned_task(self._answer(*taken, asked.lease), name="typed-answer") as self._answering:
                asked.lease.on_end(self._answering.cancel)
                await asyncio.wait({self._answering})
            if not self._answering.cancelled():
                self._answering.result()
            self._answering = None

    async def _answer(self, question: Question, message: TypedMessage, lease: Lease) -> None:
        reply = Reply(question, self._clock.monotonic(), lease)
        text = await self._written(reply)
        failure = reply.failure or ("" if text else NO_WORDS)
        # Anything that it says may be quoted, so nothing in it formats or links.
        posted = await message.answer(joined((verbatim(escape_markdown(text)), failure), "\n"))
        await self._reply_recorder.record_written(reply, text if posted else "")

    async def _written(self, reply: Reply) -> str:
        """Return the sentences of an answer that people may read. What failed is noted in `reply`."""
        kept: list[str] = []
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = self._responder.respond(await self._prompts.build_context(reply.question))
                await self._generate(answer, kept, reply)
        except TimeoutError:
            reply.fail("time", TOO_SLOW)
        except CompactionError as error:
            reply.fail("context", error)
        return " ".join(kept)

    async def _generate(self, answer: AsyncGenerator[str, None], kept: list[str], reply: Reply) -> None:
        normalizer = self._rules.new_normalizer()
        async with aclosing(sentences_of(answer, reply, self._clock)) as sentences:
            async for item in sentences:
                if not isinstance(item, str):
                    reply.fail("model", item)
                    continue
                sentence = normalizer.normalize(item)
                if sentence is not None and await self._rules.allows(sentence.text, reply):
                    kept.append(sentence.text)
