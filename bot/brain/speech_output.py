"""Speaks a reply: each sentence is cleaned, moderated and synthesised while the one before it plays.

It records the outcome of each sentence in `ReplyProgress`. `bot.brain.reply` starts and ends replies.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from bot.brain.reply_progress import elapsed_ms
from bot.texts.catalogue import ENGLISH
from bot.texts.text import Text, in_language
from compaction.errors import ContextOverflowError
from voice.errors import SynthesisError, UnreadableTextError
from voice.speaking.moderation import ModerationError, WordList
from voice.speaking.port import AudioChunk
from voice.speaking.speech_rate import SpeechRate, words_after, words_until
from voice.speaking.text_normalizer import TextNormalizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bot.brain.generation import GeneratedItem
    from bot.brain.reply_progress import ReplyProgress
    from bot.clock import Clock
    from voice.speaking.moderation import Moderator
    from voice.speaking.playback import Playback, QueuedSpeech
    from voice.speaking.port import Speech, Synthesizer
    from voice.speaking.text_normalizer import SpeakableText

    # Gets the sentences of one reply in order; returns how each is read aloud, or None if it is not spoken.
    SentenceReader = Callable[[str], str | None]

log = structlog.get_logger()

# Playback takes pieces in real time. A piece that waits longer than this behind two others will not be played.
QUEUE_TIMEOUT_S = 60.0
# A sender that takes no sound for this long, while playback is not paused, counts as gone.
PLAYBACK_SLACK_S = 10.0

MODEL_FAILED = Text("Sorry, the language model did not answer.")
MODEL_BROKE_OFF = Text("Sorry, I lost the rest of my answer.")
TOO_MUCH = Text("That is more than I can take in at once. Ask me for less at a time.")
BLOCKED = Text("I left out something that I must not say here.")
NOT_PLAYED = Text("My answer did not get through to the voice channel. /leave and /join connect me anew.")


@dataclass(frozen=True, slots=True)
class SpeechRules:
    """What may be said aloud in a room, and how it is read.

    `own_names`: names before a colon at the start of a reply that are not read. `pronunciations`: written word -> how
    it is spoken. `moderator`: asked about each sentence, after `blocked_words`. `language`: returns that of the bot's
    own sentences, as a Discord locale; `voice_language`: the code of that which the voice speaks now, empty if that is
    not known.
    """

    own_names: Sequence[str] = ()
    pronunciations: Mapping[str, str] = field(default_factory=dict)
    blocked_words: Sequence[str] = ()
    moderator: Moderator | None = None
    language: Callable[[], str] = lambda: ENGLISH
    voice_language: Callable[[], str] = lambda: ""

    def new_normalizer(self) -> TextNormalizer:
        """Return what makes sentences of one reply out of a model's text, in order."""
        return TextNormalizer(self.pronunciations, own_names=self.own_names, language=self.voice_language())


class AnswerCheck:
    """Checks the words of answers before people hear or read them."""

    def __init__(self, rules: SpeechRules) -> None:
        self._blocked_words = WordList(rules.blocked_words)
        self._moderator = rules.moderator

    def forbids(self, text: str) -> bool:
        """Return whether `text` has a word that the bot does not use on this server."""
        return self._blocked_words.forbids(text)

    async def allows(self, text: str, progress: ReplyProgress) -> bool:
        """Return whether people may get `text`. If not, log why and note it for the channel."""
        try:
            objection = "word_list" if self.forbids(text) else None
            if objection is None and self._moderator is not None:
                objection = await self._moderator.objection(text)
        except ModerationError as error:
            progress.fail("moderation", error)
            return False
        if objection is None:
            return True
        self.report_blocked(objection, progress)
        return False

    def report_blocked(self, reason: str, progress: ReplyProgress) -> None:
        """Log that a part of the reply is left out, and have the channel told. `reason`: in a word or two."""
        log.warning("sentence_blocked", reason=reason)
        progress.failure = BLOCKED


class SpeechOutput:
    """Moderation, synthesis and playback of sentences, one for each room. `on_queued`: called when a piece starts to
    play or is queued.
    """

    def __init__(
        self,
        *,
        synthesizer: Synthesizer,
        playback: Playback,
        clock: Clock,
        on_queued: Callable[[], None],
        rules: SpeechRules,
    ) -> None:
        self._synthesizer = synthesizer
        self._playback = playback
        self._clock = clock
        self._on_queued = on_queued
        self._rules = rules
        self.check = AnswerCheck(rules)
        self._rate = SpeechRate()

    async def speak(self, sentences: asyncio.Queue[GeneratedItem], progress: ReplyProgress) -> None:
        """Speak sentences until the queue yields None. Each is synthesised while the one before it plays."""
        normalizer = self._new_normalizer()
        while (item := await sentences.get()) is not None:
            if not isinstance(item, str):
                overflow = isinstance(item, ContextOverflowError)
                progress.fail("context" if overflow else "model", item)
                failed = MODEL_BROKE_OFF if progress.pieces else MODEL_FAILED
                item = in_language(TOO_MUCH if overflow else failed, self._rules.language())
                # The model may have failed in its thoughts; our sentence is none of them.
                normalizer = self._new_normalizer()
            sentence = normalizer.normalize(item)
            if sentence is None or not await self.check.allows(sentence.text, progress):
                continue
            if not await self._say(sentence, progress):
                return

    async def say_broken_off(self, progress: ReplyProgress) -> None:
        """Say with our own voice that the rest of the reply is lost."""
        sentence = self._new_normalizer().normalize(in_language(MODEL_BROKE_OFF, self._rules.language()))
        if sentence is not None:
            await self._say(sentence, progress)

    def new_reader(self) -> SentenceReader:
        """Return a function for one reply that gets its sentences in order and returns how `speak` reads each aloud.

        None: the sentence is not spoken, or a word in it is blocked. A moderator is asked by `speak` only.
        """
        normalizer = self._new_normalizer()

        def read(sentence: str) -> str | None:
            spoken = normalizer.normalize(sentence)
            return None if spoken is None or self.check.forbids(spoken.text) else spoken.aloud

        return read

    def _new_normalizer(self) -> TextNormalizer:
        return self._rules.new_normalizer()

    async def _say(self, sentence: SpeakableText, progress: ReplyProgress) -> bool:
        """Speak one sentence; it plays while the rest of it is synthesised. Return whether playback accepts more."""
        # The turn records the text, not its pronunciation.
        expected_s = self._rate.duration_s(sentence.aloud)
        piece = await self._open_piece(sentence.text, progress, expected_s=expected_s)
        if piece is None:
            return False
        started, spoken_s = self._clock.monotonic(), 0.0
        try:
            async with aclosing(self._synthesizer.stream(sentence.aloud)) as stream:
                async for sound in stream:
                    piece.add(sound)
                    spoken_s += sound.duration_s
                    progress.audio_s += sound.duration_s
                    if progress.synthesis_first_audio_ms is None:
                        progress.synthesis_first_audio_ms = elapsed_ms(started, self._clock.monotonic())
                    if piece.done not in progress.pieces:
                        progress.pieces.append(piece.done)
                        self._on_queued()
        except SynthesisError as error:
            progress.unsaid.append(words_after(sentence.text, error.spoken_share))
            # A voice that cannot read a script works otherwise, and people read what it would have said.
            progress.fail("script" if isinstance(error, UnreadableTextError) else "voice", error)
            piece.end(text=words_until(sentence.text, error.spoken_share))
        else:
            piece.end()
            self._rate.learn(sentence.aloud, spoken_s)
        return True

    async def _open_piece(
        self, text: str, progress: ReplyProgress, *, expected_s: float = 0.0, glued: bool = False
    ) -> QueuedSpeech | None:
        """Return a piece in the playback queue, or None if playback does not advance or the reply was stopped."""
        try:
            async with asyncio.timeout(QUEUE_TIMEOUT_S):
                piece = await self._playback.open(text, expected_s=expected_s, glued=glued)
        except TimeoutError:
            progress.fail("playback", NOT_PLAYED)
            return None
        if progress.stopped:
            # The interruption made room, and the reply is cancelled only in the next turns of the event loop.
            piece.end()
            return None
        return piece

    async def queue(self, speech: Speech, progress: ReplyProgress) -> bool:
        """Queue finished sound. Return whether playback accepts more."""
        piece = await self._open_piece(speech.text, progress, glued=speech.glued)
        if piece is None:
            return False
        piece.add(AudioChunk(speech.pcm, speech.rate_hz))
        piece.end()
        progress.pieces.append(piece.done)
        progress.audio_s += len(speech.pcm) / speech.rate_hz
        self._on_queued()
        return True

    async def wait_until_played(self, progress: ReplyProgress) -> None:
        """Wait until everything queued has been played, however often barge-in pauses it."""
        waiting = set(progress.pieces)
        while waiting:
            moves = self._playback.activity_count
            _, waiting = await asyncio.wait(waiting, timeout=PLAYBACK_SLACK_S)
            if waiting and self._playback.activity_count == moves and not self._playback.paused:
                progress.fail("playback", NOT_PLAYED)
                return
