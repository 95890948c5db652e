"""The reply to a question, from its beginning to its end. `replier` makes it.

`reply_life` says what may happen to a reply. `Reply` keeps what is made of it: its sound, its failures, its times.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

import structlog

from bot.brain.question import Question, Spoken, may_skip
from bot.brain.reply_life import Asked, Fate, Ready, ReplyAct, ReplyEvent, ReplyLife, ReplyStage, WasHeard, step
from bot.texts.text import Text, sentence_of
from voice.speaking.barge_in import Answering
from voice.speaking.playback import PlaybackResult, QueuedSpeech, joined_texts
from voice.speaking.sentences import ends_sentence

if TYPE_CHECKING:
    from bot.brain.tools.toolbox import QuestionTools
    from bot.words import Lease

log = structlog.get_logger()


class Lapse(Enum):
    """Why nobody hears a reply that nobody stopped."""

    NONE = auto()
    SKIPPED = auto()  # the model decided to say nothing
    DROPPED = auto()  # it failed, and nobody waits for it
    UNHEARD = auto()  # it failed so that nobody can hear the bot: its voice, or the connection


@dataclass(slots=True, eq=False)
class Reply:
    """One reply. Times are monotonic seconds, durations milliseconds. What was heard of it is known at its end.
    `lease`: of the words that it is made of.
    """

    question: Question
    begun_at: float
    lease: Lease
    # What its model may call, which knows who may know what it tells; None: it has none yet.
    tools: QuestionTools | None = None
    # The part that was heard and counts.
    text: str = ""
    interrupted: bool = False
    first_audio_at: float | None = None
    ended_at: float = 0.0
    # How many words were heard, whether they count or not.
    heard_words: int = 0
    model_first_token_ms: float | None = None
    synthesis_first_audio_ms: float | None = None
    # A plain sentence for the channel if something failed. It never quotes what was said.
    failure: Text | None = None
    # Text for which synthesis failed; the room writes it in the channel instead.
    unsaid: str = ""
    lapse: Lapse = Lapse.NONE
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
    _life: ReplyLife = field(default_factory=ReplyLife)
    # Set when it may sound, and when its question is a recorded turn. Both are set when it is withdrawn.
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    def handle(self, event: ReplyEvent) -> ReplyAct | None:
        """Take note of what happens to it; return what is to be done (`reply_life`)."""
        self._life, act = step(self.life, event)
        if not self._life.held:
            self._released.set()
        if self._life.asked or self._life.stage is ReplyStage.WITHDRAWN:
            self.settled.set()
        return act

    @property
    def life(self) -> ReplyLife:
        """How far it has come by now: playback knows what was heard of it."""
        if self.first_frame_at is None:
            return self._life
        return step(self._life, WasHeard(self._sentences_heard()))[0]

    @property
    def stage(self) -> ReplyStage:
        return self.life.stage

    @property
    def stopped(self) -> bool:
        """Whether nothing more of it may be played."""
        return self._life.stage is ReplyStage.STOPPED

    @property
    def skipped(self) -> bool:
        """Whether nobody hears it, and nobody is told why."""
        return self.lapse in {Lapse.SKIPPED, Lapse.DROPPED}

    def may_be_heard(self) -> bool:
        """Return whether all who listen now may know what it tells."""
        return self.tools is None or self.tools.may_be_heard()

    def may_be_read(self) -> bool:
        """Return whether anybody may know it, who may read it in the chat."""
        return self.tools is None or self.tools.may_be_read()

    @property
    def spoken(self) -> Spoken | None:
        """What it replies to, if somebody has said that just now."""
        return self.question if isinstance(self.question, Spoken) else None

    def answers_speech(self, utterance_id: str) -> bool:
        """Return whether it replies to this utterance."""
        return self.spoken is not None and self.spoken.utterance_id == utterance_id

    @property
    def first_frame_at(self) -> float | None:
        """When its first sound was sent; None: not yet."""
        return next((piece.first_frame_at for piece in self.opened if piece.first_frame_at is not None), None)

    @property
    def answering(self) -> Answering | None:
        """The spoken question that it answers, as barge-in sees it; None: nobody said one just now."""
        asked = self.spoken
        return None if asked is None else Answering(asked.asker_id, asked.ended_at, self.begun_at, self.first_frame_at)

    def ask(self, question: Question) -> ReplyAct | None:
        """Take note that it is certainly wanted, as the reply to `question`, which is a turn now."""
        self.question = question
        return self.handle(Asked())

    async def until_released(self, *, ready: bool = True) -> None:
        """Wait until it may sound, or is withdrawn. `ready`: it waits for nothing else."""
        if ready:
            self.handle(Ready())
        await self._released.wait()

    def add(self, piece: asyncio.Future[PlaybackResult]) -> None:
        """Take note of sound in the playback queue: from the first on, its length limits the reply."""
        self.pieces.append(piece)
        if not self.stopped:
            self.end_at(None)

    def end_at(self, when: float | None) -> None:
        """Make nothing more of it from then on, by the event loop's time. None: it may take as long as it needs."""
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
        if stage in {"voice", "playback"}:
            self.lapse = Lapse.UNHEARD

    def skip(self, problem: Exception | Text | None = None) -> None:
        """Mark the reply as skipped. `problem`: a failure that is only logged, because nobody waits for this reply."""
        if problem is not None:
            log.warning("optional_reply_failed", problem=problem)
        self.lapse = Lapse.SKIPPED if problem is None else Lapse.DROPPED

    def give_up(self, stage: str, problem: Exception | Text) -> None:
        """Fail; or skip it if it may be skipped and people have not heard its beginning."""
        if may_skip(self.question) and not self.pieces:
            self.skip(problem)
        else:
            self.fail(stage, problem)

    def played(self, most: int | None = None) -> list[PlaybackResult]:
        """Return the pieces that were played, or cut off while they played; of the first `most`, if it is given."""
        return [piece.result() for piece in self.pieces[:most] if piece.done() and not piece.cancelled()]

    def conclude(self, now: float) -> None:
        """Take note of what was heard of it, at its end, as far as it counts."""
        played = self.played()
        heard = joined_texts((piece.heard_text, piece.glued) for piece in played)
        starts = [piece.first_frame_at for piece in played if piece.first_frame_at is not None]
        self.first_audio_at, self.ended_at = min(starts, default=None), now
        self.heard_words = len(heard.split())
        counts = self.life.fate is Fate.RECORDED
        self.text, self.interrupted = (heard if counts else ""), any(not piece.complete for piece in played)

    def _sentences_heard(self) -> int:
        """Return how many whole sentences of the answer were heard. A voice gets a sentence at a time."""
        answer = [piece for piece in self.played() if piece.complete][self.fillers :]
        return sum(ends_sentence(piece.text) for piece in answer)


def elapsed_ms(since: float, now: float) -> float:
    """Return the milliseconds between two monotonic times in seconds."""
    return round(1000 * (now - since), 1)
