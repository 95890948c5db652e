"""The state of the current reply. The replier, the generator and the speech output all write to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from bot.texts.text import Text, sentence_of

if TYPE_CHECKING:
    import asyncio

    from voice.speaking.playback import PlaybackResult

log = structlog.get_logger()

# The stages whose failure leaves the bot without a sound.
UNHEARD_STAGES = ("voice", "playback")


@dataclass(slots=True)
class ReplyProgress:
    """The progress of one reply. `started_at`: monotonic seconds. `audio_s`: sound handed to playback so far."""

    started_at: float
    pieces: list[asyncio.Future[PlaybackResult]] = field(default_factory=list)
    audio_s: float = 0.0
    # Text for which synthesis failed.
    unsaid: list[str] = field(default_factory=list)
    model_first_token_ms: float | None = None
    synthesis_first_audio_ms: float | None = None
    # A plain sentence for the people in the channel.
    failure: Text | None = None
    # Whether speech-to-speech produces this reply and must be told how much of it was played.
    speech_to_speech: bool = False
    # How many of the pieces are its own, if our voice has said something after them; None: all.
    model_pieces: int | None = None
    # It was given up before its first sound, because nobody waits for it.
    dropped: bool = False
    # The model decided to say nothing, or the reply was dropped.
    skipped: bool = False
    # Nobody can hear the bot: its voice failed, or the connection took no sound.
    unheard: bool = False
    # The reply was interrupted, or the replier shuts down, so nothing more of it may be played.
    stopped: bool = False

    def fail(self, stage: str, problem: Exception | Text) -> None:
        """Log a failure and keep its sentence for the channel. The last of several failures replaces the others."""
        log.error("reply_failed", stage=stage, problem=problem)
        self.failure = problem if isinstance(problem, Text) else sentence_of(problem)
        self.unheard = self.unheard or stage in UNHEARD_STAGES

    def skip(self, problem: Exception | Text | None = None) -> None:
        """Mark the reply as skipped. `problem`: a failure that is only logged, because nobody waits for this reply."""
        if problem is not None:
            log.warning("optional_reply_failed", problem=problem)
        self.skipped = True

    @property
    def played(self) -> list[PlaybackResult]:
        """Return the pieces that were played, or cut off while they played."""
        return _played(self.pieces)

    @property
    def played_of_model(self) -> list[PlaybackResult]:
        """Return those of them that speech-to-speech has made."""
        return _played(self.pieces[: self.model_pieces])


def _played(pieces: list[asyncio.Future[PlaybackResult]]) -> list[PlaybackResult]:
    return [piece.result() for piece in pieces if piece.done() and not piece.cancelled()]


def elapsed_ms(since: float, now: float) -> float:
    """Return the milliseconds between two monotonic times in seconds."""
    return round(1000 * (now - since), 1)
