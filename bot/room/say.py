"""Says fixed sentences aloud, outside replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from voice.errors import SynthesisError
from voice.speaking.port import synthesize_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from voice.speaking.playback import Playback
    from voice.speaking.port import Synthesizer

log = structlog.get_logger()


async def say_all(sentences: Iterable[str], synthesizer: Synthesizer, playback: Playback) -> bool:
    """Say each sentence and return whether every one was played to its end. May wait for ever: set a time limit."""
    for sentence in sentences:
        try:
            speech = await synthesize_all(synthesizer, sentence)
        except SynthesisError as error:
            log.warning("sentence_not_spoken", problem=error)
            return False
        if not len(speech.pcm) or not (await playback.say(speech)).complete:
            return False
    return True
