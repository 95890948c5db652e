"""Says fixed sentences aloud, outside replies: the notice that the bot listens, and samples of voices."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from voice.errors import SynthesisError
from voice.speaking.port import AudioChunk, synthesize_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bot.channel.port import Place
    from bot.clock import Clock
    from voice.speaking.playback import Playback, PlaybackResult
    from voice.speaking.port import Speech, Synthesizer

log = structlog.get_logger()

# Less than the supervisor's time to join, because the notice may have to be spoken first.
SAY_TIMEOUT_S = 50.0
# How often to look whether a reply is over.
POLL_S = 0.2
# How often a sentence is begun if replies cut it: each that ends stops all sound, also one that says nothing.
MOST_TRIES = 3


class FixedSentences:
    """Says fixed sentences in one room. `busy`: returns whether a reply is in progress, which comes first."""

    def __init__(self, place: Place, playback: Playback, *, busy: Callable[[], bool], clock: Clock) -> None:
        self._place = place
        self._playback = playback
        self._busy = busy
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
        sounds: list[asyncio.Future[PlaybackResult]] = []
        try:
            async with asyncio.timeout(SAY_TIMEOUT_S):
                return await self._say_all(sentences, synthesizer, sounds, may_say)
        except TimeoutError:
            log.warning("sentences_not_spoken", within_s=SAY_TIMEOUT_S)
            for sound in sounds:
                # Not all sound: a reply may be in progress.
                self._playback.stop_one(sound)
            return False

    def stop_forbidden(self) -> None:
        """Stop the sentences in progress that may not be said any more."""
        for sound in [sound for sound, may_say in self._playing.items() if not may_say()]:
            self._playback.stop_one(sound)

    async def _say_all(
        self,
        sentences: Iterable[str],
        synthesizer: Synthesizer,
        sounds: list[asyncio.Future[PlaybackResult]],
        may_say: Callable[[], bool],
    ) -> bool:
        """`sounds`: gets what was queued."""
        for sentence in sentences:
            await self._until_no_reply()
            if not self._place.audible or not may_say():
                return False
            try:
                speech = await synthesize_all(synthesizer, sentence)
            except SynthesisError as error:
                log.warning("sentence_not_spoken", problem=error)
                return False
            if not len(speech.pcm) or not await self._play(speech, sounds, may_say):
                return False
        return True

    async def _play(
        self, speech: Speech, sounds: list[asyncio.Future[PlaybackResult]], may_say: Callable[[], bool]
    ) -> bool:
        for _ in range(MOST_TRIES):
            await self._until_no_reply()
            piece = await self._playback.open(speech.text)
            # Asked here, because the sentence has waited for its sound, for a reply, and for room in the queue.
            if not may_say():
                piece.end()
                return False
            sounds.append(piece.done)
            piece.add(AudioChunk(speech.pcm, speech.rate_hz))
            piece.end()
            if await self._is_played(piece.done, may_say):
                return True
        return False

    async def _is_played(self, sound: asyncio.Future[PlaybackResult], may_say: Callable[[], bool]) -> bool:
        self._playing[sound] = may_say
        try:
            return (await sound).complete
        finally:
            del self._playing[sound]

    async def _until_no_reply(self) -> None:
        while self._busy():
            await self._clock.sleep(POLL_S)
