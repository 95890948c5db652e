"""Says fixed sentences aloud, outside replies: the notice that the bot listens, and samples of voices."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from voice.errors import SynthesisError
from voice.speaking.port import synthesize_all

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

    async def say(self, sentences: Iterable[str], synthesizer: Synthesizer) -> bool:
        """Say sentences, each when no reply is in progress, and again if one has cut it. Return whether all of them
        were played to people in time.
        """
        sounds: list[asyncio.Future[PlaybackResult]] = []
        try:
            async with asyncio.timeout(SAY_TIMEOUT_S):
                return await self._say_all(sentences, synthesizer, sounds)
        except TimeoutError:
            log.warning("sentences_not_spoken", within_s=SAY_TIMEOUT_S)
            for sound in sounds:
                # Not all sound: a reply may be in progress.
                self._playback.stop_one(sound)
            return False

    async def _say_all(
        self, sentences: Iterable[str], synthesizer: Synthesizer, sounds: list[asyncio.Future[PlaybackResult]]
    ) -> bool:
        """`sounds`: gets what was queued."""
        for sentence in sentences:
            await self._until_no_reply()
            if not self._place.audible:
                return False
            try:
                speech = await synthesize_all(synthesizer, sentence)
            except SynthesisError as error:
                log.warning("sentence_not_spoken", problem=error)
                return False
            if not len(speech.pcm) or not await self._play(speech, sounds):
                return False
        return True

    async def _play(self, speech: Speech, sounds: list[asyncio.Future[PlaybackResult]]) -> bool:
        for _ in range(MOST_TRIES):
            await self._until_no_reply()
            sound = await self._playback.queue(speech)
            sounds.append(sound)
            if (await sound).complete:
                return True
        return False

    async def _until_no_reply(self) -> None:
        while self._busy():
            await self._clock.sleep(POLL_S)
