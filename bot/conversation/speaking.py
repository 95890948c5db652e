"""What the bot says in one room: replies, which may be prepared before they are wanted, and fixed sentences.

`Speaking` owns what makes them and plays them. `conversation` decides what is asked and when.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from bot.brain.heard_sign import HeardSign
from bot.brain.replier import Replier
from bot.brain.speech_output import SpeechRules
from bot.conversation.room_voice import RoomVoice
from bot.models.voices import DEFAULT_VOICE
from bot.texts.text import Text, in_language
from voice.errors import SynthesisError
from voice.speaking.playback import Playback, PlaybackResult
from voice.speaking.port import AudioChunk, Speech, Synthesizer, synthesize_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bot.brain.responder import Responder
    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.conversation.prompt import PromptBuilder
    from bot.conversation.services import RoomServices
    from bot.conversation.turn_recorder import ReplyRecorder
    from bot.participation.participation import Participation
    from bot.realtime.bridge import RealtimeBridge
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
    """The bot's speech in `channel`. `prompts`: made for each question, which `responder` answers. `recorder`: gets
    each finished reply. `bridge`: speech-to-speech, asked before the language model; None: there is none. `listener`:
    hears the people there.

    *Ownership*: `replier.run` is the conversation's task.
    """

    def __init__(
        self,
        channel: RoomChannel,
        services: RoomServices,
        *,
        participation: Participation,
        prompts: PromptBuilder,
        responder: Responder,
        recorder: ReplyRecorder,
        bridge: RealtimeBridge | None,
        listener: RoomListener,
    ) -> None:
        self._channel = channel
        self.voice = RoomVoice(
            channel,
            services.speech.synthesizer,
            participation.notices,
            servers=services.servers,
            voices=services.voices,
            # The voices of endpoints speak any language.
            usual_voice=None if services.speaking.by_endpoint else DEFAULT_VOICE,
        )
        self.playback = Playback(monotonic=services.clock.monotonic)
        self.rules = SpeechRules(
            channel,
            self.voice,
            own_names=prompts.own_names,
            pronunciations=services.speaking.pronounced_in(channel.guild_id),
            blocked_words=services.speaking.blocked_in(channel.guild_id),
            moderator=services.speech.moderator,
        )
        self.replier = Replier(
            build_context=prompts.build_context,
            responder=responder,
            playback=self.playback,
            clock=services.clock,
            timeout_s=services.replies.timeout_s,
            on_reply=recorder.record,
            rules=self.rules,
            words=participation.words,
            speech_to_speech=bridge,
            sign=HeardSign(self.playback, self.voice, services.clock, channel, services.servers, listener),
        )
        self.fixed_sentences = FixedSentences(
            channel, self.playback, participation, replier=self.replier, clock=services.clock
        )

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

    def __init__(
        self,
        channel: RoomChannel,
        playback: Playback,
        participation: Participation,
        *,
        replier: Replier,
        clock: Clock,
    ) -> None:
        self._channel = channel
        self._playback = playback
        self._participation = participation
        self._replier = replier
        self._clock = clock
        # What is being said although nobody needs it, so that somebody who wants silence stops it.
        self._optional: set[asyncio.Future[PlaybackResult]] = set()

    async def say(self, sentences: Iterable[str], synthesizer: Synthesizer, *, optional: bool = False) -> bool:
        """Say sentences, each when no reply is in progress, and again if one has cut it. Return whether all of them
        were played to people in time.

        `optional`: not by a bot that is silenced. That is asked directly before each is played; see `fall_silent`.
        """
        try:
            async with asyncio.timeout(SAY_TIMEOUT_S):
                return await self._say_all(sentences, synthesizer, optional=optional)
        except TimeoutError:
            log.warning("sentences_not_spoken", within_s=SAY_TIMEOUT_S)
            return False

    def fall_silent(self) -> None:
        """Stop what is being said although nobody needs it."""
        for sound in list(self._optional):
            self._playback.stop_one(sound)

    def _may_say(self, *, optional: bool) -> bool:
        return not (optional and self._participation.silenced)

    async def _say_all(self, sentences: Iterable[str], synthesizer: Synthesizer, *, optional: bool) -> bool:
        for sentence in sentences:
            await self._until_no_reply()
            if not self._channel.audible or not self._may_say(optional=optional):
                return False
            try:
                speech = await synthesize_all(synthesizer, sentence)
            except SynthesisError as error:
                log.warning("sentence_not_spoken", problem=error)
                return False
            if not len(speech.pcm) or not await self._play(speech, optional=optional):
                return False
        return True

    async def _play(self, speech: Speech, *, optional: bool) -> bool:
        for _ in range(MOST_TRIES):
            await self._until_no_reply()
            piece = await self._playback.open(speech.text)
            # Asked here, because the sentence has waited for its sound, for a reply, and for room in the queue.
            if not self._may_say(optional=optional):
                piece.end()
                return False
            piece.add(AudioChunk(speech.pcm, speech.rate_hz))
            piece.end()
            if optional:
                self._optional.add(piece.done)
            try:
                if (await piece.done).complete:
                    return True
            except asyncio.CancelledError:
                # Not all sound: a reply may be in progress.
                self._playback.stop_one(piece.done)
                raise
            finally:
                self._optional.discard(piece.done)
        return False

    async def _until_no_reply(self) -> None:
        while self._replier.busy:
            await self._clock.sleep(POLL_S)
