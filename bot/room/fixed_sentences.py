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
    from voice.speaking.playback import Playback
    from voice.speaking.port import Synthesizer

log = structlog.get_logger()

# Less than the supervisor's time to join, because the notice may have to be spoken first.
SAY_TIMEOUT_S = 50.0
# How often to look whether a reply is over.
POLL_S = 0.2


class FixedSentences:
    """Says fixed sentences in one room. `busy`: returns whether a reply is in progress, which comes first."""

    def __init__(self, place: Place, playback: Playback, *, busy: Callable[[], bool], clock: Clock) -> None:
        self._place = place
        self._playback = playback
        self._busy = busy
        self._clock = clock

    async def say(self, sentences: Iterable[str], synthesizer: Synthesizer) -> bool:
        """Say sentences when no reply is in progress. Return whether all of them were played to people in time."""
        try:
            async with asyncio.timeout(SAY_TIMEOUT_S):
                while self._busy():
                    await self._clock.sleep(POLL_S)
                return self._place.audible and await self._say_all(sentences, synthesizer)
        except TimeoutError:
            log.warning("sentences_not_spoken", within_s=SAY_TIMEOUT_S)
            self._playback.stop()
            return False

    async def _say_all(self, sentences: Iterable[str], synthesizer: Synthesizer) -> bool:
        for sentence in sentences:
            try:
                speech = await synthesize_all(synthesizer, sentence)
            except SynthesisError as error:
                log.warning("sentence_not_spoken", problem=error)
                return False
            if not len(speech.pcm) or not (await self._playback.say(speech)).complete:
                return False
        return True
