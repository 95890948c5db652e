"""A question to the bot and the reply to it, from its beginning to its end. `replier` makes it.

A reply may begin before it is certain that one is wanted: it is then held before its first sound, until it is released
or withdrawn.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

import structlog

from bot.texts.text import Text, sentence_of
from voice.speaking.playback import joined_texts

if TYPE_CHECKING:
    from bot.brain.decider import Reason
    from bot.brain.tools.frozen_calls import FrozenCall
    from bot.channel.port import TypedMessage
    from compaction.model import Turn
    from voice.speaking.playback import PlaybackResult, QueuedSpeech

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Question:
    """The turn to answer. `utterance_id`: the speech it came from; `ended_at`: when that ended, monotonic seconds.

    `asker_id`: the person to answer, if several people speak in the turn; empty if the bot speaks unasked. `reason`:
    why the bot answers. `may_skip`: the model may decide to say nothing. `answers_without_model`: as it is named.
    `language`: the code of the language to answer in; empty: that of the conversation. `result_of`: the call that ran
    behind the talk, on their press or for long, whose result is to be told. `typed`: the message below which the answer
    is written, where somebody did not say it. `says`: what is said, word for word,
    without a model; `reminder_id`: of the reminder that this is.
    """

    turn: Turn
    utterance_id: str | None = None
    ended_at: float | None = None
    asker_id: str | None = None
    reason: Reason | None = None
    may_skip: bool = False
    answers_without_model: bool = False
    language: str = ""
    result_of: FrozenCall | None = None
    typed: TypedMessage | None = None
    says: str = ""
    reminder_id: int | None = None

    def is_same_as(self, other: Question) -> bool:
        """Return whether a reply to this question replies to `other` too: the same words of the same people, as the
        same turn, and in the same language, which the end of what somebody says may show.
        """
        return (
            self.utterance_id == other.utterance_id
            and (self.turn.seq, self.turn.kind, self.turn.parts) == (other.turn.seq, other.turn.kind, other.turn.parts)
            and (self.asker_id, self.reason, self.may_skip) == (other.asker_id, other.reason, other.may_skip)
            and (self.answers_without_model, self.language) == (other.answers_without_model, other.language)
        )


class ReplyStage(Enum):
    """How far a reply has come."""

    BEGUN = auto()
    READY = auto()  # it could sound now, or goes no further before somebody certainly wants it
    RELEASED = auto()  # it sounds as soon as it can
    HEARD = auto()  # its first frame was sent; `Reply.text` is what was heard of it in the end
    WITHDRAWN = auto()  # nobody wants it, and it counts as never begun


@dataclass(slots=True, eq=False)
class Reply:
    """One reply. Times are monotonic seconds, durations milliseconds. What was heard of it is known at its end."""

    question: Question
    begun_at: float
    # The part that was heard.
    text: str = ""
    interrupted: bool = False
    first_audio_at: float | None = None
    ended_at: float = 0.0
    model_first_token_ms: float | None = None
    synthesis_first_audio_ms: float | None = None
    # A plain sentence for the channel if something failed. It never quotes what was said.
    failure: Text | None = None
    # Text for which synthesis failed; the room writes it in the channel instead.
    unsaid: str = ""
    # The model decided to say nothing, or the reply failed and nobody waits for it (`dropped`).
    skipped: bool = False
    dropped: bool = False
    # Nobody can hear the bot: its voice failed, or the connection took no sound.
    unheard: bool = False
    # It was interrupted, or the replier shuts down, so nothing more of it may be played.
    stopped: bool = False
    pieces: list[asyncio.Future[PlaybackResult]] = field(default_factory=list)
    # How many of them, at the beginning, are no part of the answer.
    fillers: int = 0
    # Speech-to-speech makes it and must be told how much was played, of so many pieces; None: of all.
    speech_to_speech: bool = False
    model_pieces: int | None = None
    # Until its first sound.
    limit: asyncio.Timeout | None = None
    # Makes it.
    task: asyncio.Task[None] | None = None
    # All that it was given in the playback queue, also what got no sound.
    opened: list[QueuedSpeech] = field(default_factory=list)
    _ready: bool = False
    _withdrawn: bool = False
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    # Set when it is certain to be wanted: `question` is then that of the recorded turn; or withdrawn.
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def stage(self) -> ReplyStage:
        if self._withdrawn:
            return ReplyStage.WITHDRAWN
        if not self.released:
            return ReplyStage.READY if self._ready else ReplyStage.BEGUN
        heard = any(piece.first_frame_at is not None for piece in self.opened)
        return ReplyStage.HEARD if heard else ReplyStage.RELEASED

    @property
    def released(self) -> bool:
        return self._released.is_set()

    @property
    def asked(self) -> bool:
        """Whether its question is that of a recorded turn."""
        return self._settled.is_set() and not self._withdrawn

    def ready(self) -> None:
        """Take note that it could sound now."""
        self._ready = True

    def release(self) -> None:
        """Let it sound."""
        self._released.set()

    def ask(self, question: Question) -> None:
        """Take note that it is certainly wanted, as the reply to `question`."""
        self.question = question
        self._settled.set()

    def withdraw(self) -> None:
        """Take note that nobody wants it."""
        self._withdrawn = True
        self._released.set()
        self._settled.set()

    async def until_released(self) -> None:
        """Wait until somebody wants it. Nothing but that is waited for then, so it counts as ready."""
        self.ready()
        await self._released.wait()

    async def until_settled(self) -> None:
        """Wait until its question is a recorded turn, or it is withdrawn."""
        await self._settled.wait()

    def add(self, piece: asyncio.Future[PlaybackResult]) -> None:
        """Take note of sound in the playback queue: from the first on, its length limits the reply."""
        self.pieces.append(piece)
        if not self.stopped:
            self._end_at(None)

    def stop(self, now: float) -> None:
        """End it at once. `now`: the event loop's time."""
        self.stopped = True
        self._end_at(now)

    def _end_at(self, when: float | None) -> None:
        if self.limit is not None and not self.limit.expired():
            self.limit.reschedule(when)

    def on_first_token(self, now: float) -> None:
        """Take note that the model has begun, if it is not noted yet."""
        if self.model_first_token_ms is None:
            self.model_first_token_ms = elapsed_ms(self.begun_at, now)

    def fail(self, stage: str, problem: Exception | Text) -> None:
        """Log a failure and keep its sentence for the channel. The last of several failures replaces the others."""
        log.error("reply_failed", stage=stage, problem=problem)
        self.failure = problem if isinstance(problem, Text) else sentence_of(problem)
        # After these nobody hears a sound of it.
        self.unheard = self.unheard or stage in {"voice", "playback"}

    def skip(self, problem: Exception | Text | None = None) -> None:
        """Mark the reply as skipped. `problem`: a failure that is only logged, because nobody waits for this reply."""
        if problem is not None:
            log.warning("optional_reply_failed", problem=problem)
        self.skipped, self.dropped = True, problem is not None

    def give_up(self, stage: str, problem: Exception | Text) -> None:
        """Fail; or skip it if it may be skipped and people have not heard its beginning."""
        if self.question.may_skip and not self.pieces:
            self.skip(problem)
        else:
            self.fail(stage, problem)

    def played(self, most: int | None = None) -> list[PlaybackResult]:
        """Return the pieces that were played, or cut off while they played; of the first `most`, if it is given."""
        return [piece.result() for piece in self.pieces[:most] if piece.done() and not piece.cancelled()]

    def conclude(self, now: float) -> None:
        """Take note of what was heard of it, at its end."""
        played = self.played()
        self.text = joined_texts((piece.heard_text, piece.glued) for piece in played)
        self.interrupted = any(not piece.complete for piece in played)
        starts = [piece.first_frame_at for piece in played if piece.first_frame_at is not None]
        self.first_audio_at, self.ended_at = min(starts, default=None), now


def elapsed_ms(since: float, now: float) -> float:
    """Return the milliseconds between two monotonic times in seconds."""
    return round(1000 * (now - since), 1)
