"""What the bot says in one room: replies, which may be prepared before they are wanted, and fixed sentences.

`Speaking` owns what makes them and plays them. `conversation` decides what is asked and when.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from bot.brain.heard_sign import HeardSign
from bot.brain.question import Question, language_of
from bot.brain.replier import Replier
from bot.brain.speech_output import SpeechRules
from bot.texts.text import Text, in_language
from voice.errors import SynthesisError
from voice.speaking.playback import Playback, PlaybackResult
from voice.speaking.port import AudioChunk, Speech, Synthesizer, synthesize_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence

    from bot.brain.context import ModelContext
    from bot.brain.reply import Reply
    from bot.brain.responder import Responder
    from bot.channel.notice_queue import NoticeQueue
    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.conversation.services import RoomServices
    from bot.realtime.bridge import RealtimeBridge
    from bot.words import Words
    from voice.listening.listener import RoomListener

log = structlog.get_logger()

# At the end: how long recording the interrupted reply may take.
SHUT_DOWN_S = 2.0
# At the end of the process nobody has sent the bot away: a sentence that it speaks may end.
LAST_SENTENCE_S = 10.0

# Less than `bot.room.rooms` allows for joining, because the notice may have to be spoken first.
SAY_TIMEOUT_S = 50.0
# How often to look whether a reply is over.
POLL_S = 0.2
# How often a sentence is begun if replies cut it: each that ends stops all sound, also one that says nothing.
MOST_TRIES = 3


class Speaking:
    """The bot's speech in `channel`. `notices`: has sentences written there. `own_names`: returns the bot's names
    there. `bridge`: speech-to-speech, asked before the language model; None: there is none. `listener`: hears the
    people there. `words`: those of the session.

    *Ownership*: `replier.run` is the conversation's task.
    """

    def __init__(
        self,
        channel: RoomChannel,
        services: RoomServices,
        *,
        build_context: Callable[[Question], Awaitable[ModelContext]],
        responder: Responder,
        on_reply: Callable[[Reply], Awaitable[None]],
        notices: NoticeQueue,
        own_names: Callable[[], Sequence[str]],
        bridge: RealtimeBridge | None,
        listener: RoomListener,
        words: Words,
    ) -> None:
        self._channel = channel
        voice = self.voice = services.open_voice(channel, services.speech.synthesizer, notices.add)
        self.playback = Playback(monotonic=services.clock.monotonic)
        self.rules = SpeechRules(
            own_names=own_names,
            pronunciations=services.speaking.pronounced_in(channel.guild_id),
            blocked_words=services.speaking.blocked_in(channel.guild_id),
            moderator=services.speech.moderator,
            language=lambda: channel.language,
            voice_language=lambda: voice.language,
        )
        sign = HeardSign(
            self.playback,
            voice,
            services.clock,
            channel,
            kind=lambda: services.servers.of(channel.guild_id).heard_sign,
            somebody_speaks=lambda: bool(listener.sounding),
        )

        def accompany(reply: Reply) -> Coroutine[object, object, None]:
            voice.prefer(language_of(reply.question))
            return sign.accompany(reply)

        self.replier = Replier(
            build_context=build_context,
            responder=responder,
            synthesizer=voice,
            playback=self.playback,
            clock=services.clock,
            timeout_s=services.replies.timeout_s,
            on_reply=on_reply,
            rules=self.rules,
            words=words,
            speech_to_speech=bridge,
            accompany=accompany,
        )
        self.fixed_sentences = FixedSentences(channel, self.playback, replier=self.replier, clock=services.clock)

    async def finish(self, *, process_ends: bool) -> None:
        """Fall silent, and let the part of the reply that was heard be recorded. `process_ends`: a sentence that is
        being spoken may end first.
        """
        self.replier.answer_nothing_more()
        if process_ends and (sentence := self.playback.end_after_current()) is not None:
            await asyncio.wait({sentence}, timeout=LAST_SENTENCE_S)
        await self.replier.shut_down(within_s=SHUT_DOWN_S)

    async def speak_notice(self, sentences: Sequence[Text]) -> bool:
        """Say sentences aloud in the server's language. Return whether all of them were played to people."""
        spoken = [in_language(sentence, self._channel.language) for sentence in sentences]
        self.voice.prefer("")
        return await self.fixed_sentences.say(spoken, self.voice)


class FixedSentences:
    """Says fixed sentences in one room. A reply of `replier` that is in progress comes first."""

    def __init__(self, channel: RoomChannel, playback: Playback, *, replier: Replier, clock: Clock) -> None:
        self._channel = channel
        self._playback = playback
        self._replier = replier
        self._clock = clock
        # What is being said, and what tells whether it may still be said.
        self._playing: dict[asyncio.Future[PlaybackResult], Callable[[], bool]] = {}

    async def say(
        self, sentences: Iterable[str], synthesizer: Synthesizer, *, may_say: Callable[[], bool] = lambda: True
    ) -> bool:
        """Say sentences, each when no reply is in progress, and again if one has cut it. Return whether all of them
        were played to people in time.

        `may_say`: returns whether they may be said. It is asked directly before each is played; see `stop_forbidden`.
        """
        try:
            async with asyncio.timeout(SAY_TIMEOUT_S):
                return await self._say_all(sentences, synthesizer, may_say)
        except TimeoutError:
            log.warning("sentences_not_spoken", within_s=SAY_TIMEOUT_S)
            return False

    def stop_forbidden(self) -> None:
        """Stop the sentences in progress that may not be said any more."""
        for sound in [sound for sound, may_say in self._playing.items() if not may_say()]:
            self._playback.stop_one(sound)

    async def _say_all(self, sentences: Iterable[str], synthesizer: Synthesizer, may_say: Callable[[], bool]) -> bool:
        for sentence in sentences:
            await self._until_no_reply()
            if not self._channel.audible or not may_say():
                return False
            try:
                speech = await synthesize_all(synthesizer, sentence)
            except SynthesisError as error:
                log.warning("sentence_not_spoken", problem=error)
                return False
            if not len(speech.pcm) or not await self._play(speech, may_say):
                return False
        return True

    async def _play(self, speech: Speech, may_say: Callable[[], bool]) -> bool:
        for _ in range(MOST_TRIES):
            await self._until_no_reply()
            piece = await self._playback.open(speech.text)
            # Asked here, because the sentence has waited for its sound, for a reply, and for room in the queue.
            if not may_say():
                piece.end()
                return False
            piece.add(AudioChunk(speech.pcm, speech.rate_hz))
            piece.end()
            self._playing[piece.done] = may_say
            try:
                if (await piece.done).complete:
                    return True
            except asyncio.CancelledError:
                # Not all sound: a reply may be in progress.
                self._playback.stop_one(piece.done)
                raise
            finally:
                del self._playing[piece.done]
        return False

    async def _until_no_reply(self) -> None:
        while self._replier.busy:
            await self._clock.sleep(POLL_S)
