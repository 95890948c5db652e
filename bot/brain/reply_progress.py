"""What is known of the answer being carried out: what thinking, speaking and their conductor each add to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    import asyncio

    from voice.speaking.playback import Played

log = structlog.get_logger()


@dataclass(slots=True)
class ReplyProgress:
    """How far an answer is. `begun_at` is monotonic seconds, `audio_s` the sound handed to playback so far."""

    begun_at: float
    pieces: list[asyncio.Future[Played]] = field(default_factory=list)
    audio_s: float = 0.0
    # What the voice could not say.
    unsaid: list[str] = field(default_factory=list)
    model_first_token_ms: float | None = None
    synthesis_first_audio_ms: float | None = None
    # A plain sentence for the people in the channel.
    failure: str | None = None
    # Whether speech-to-speech was asked, and so must be told how far it was heard.
    direct: bool = False
    # There was nothing to say.
    skipped: bool = False

    def fail(self, stage: str, sentence: str) -> None:
        """Note what failed, for the log and for the people; of several failures the last one is told to them."""
        log.error("reply_failed", stage=stage, problem=sentence)
        self.failure = sentence

    def skip(self, problem: str = "") -> None:
        """Note that nothing is said. `problem`: what went wrong, which nobody who did not ask need be told."""
        if problem:
            log.warning("doubtful_reply_failed", problem=problem)
        self.skipped = True

    @property
    def played(self) -> list[Played]:
        """Return what has been played, or was cut off while it played."""
        return [piece.result() for piece in self.pieces if piece.done() and not piece.cancelled()]


def elapsed_ms(since: float, now: float) -> float:
    """Return the milliseconds between two monotonic times, as logs show them."""
    return round(1000 * (now - since), 1)
