"""A question to the bot and the reply to it, from its beginning to its end. `replier` makes it.

`reply_life` says what may happen to a reply. `Reply` keeps what is made of it: its sound, its failures, its times.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

import structlog

from bot.brain.reply_life import Asked, Fate, Ready, ReplyLife, ReplyStage, WasHeard, step
from bot.texts.text import Text, sentence_of
from compaction.model import TurnPart
from voice.speaking.barge_in import Answering
from voice.speaking.playback import joined_texts
from voice.speaking.sentences import ends_sentence

if TYPE_CHECKING:
    from bot.brain.decider import Reason
    from bot.brain.reply_life import ReplyAct, ReplyEvent
    from bot.brain.tools.frozen_calls import FrozenCall
    from bot.channel.port import TypedMessage
    from compaction.model import Turn
    from voice.speaking.playback import PlaybackResult, QueuedSpeech

log = structlog.get_logger()

# What somebody says in several halves is one question of at most so many characters, like a turn in a prompt. The
# newest halves are kept.
MOST_CHARS = 1_200


@dataclass(frozen=True, slots=True)
class Question:
    """The turn to answer. `utterance_id`: the speech it came from; `ended_at`: when that ended, monotonic seconds.

    `asker_id`: the person to answer, if several people speak in the turn; empty if the bot speaks unasked. `reason`:
    why the bot answers. `may_skip`: the model may decide to say nothing. `answers_without_model`: as it is named.
    `language`: the code of the language to answer in; empty: that of the conversation. `result_of`: the call that ran
    behind the talk, on their press or for long, whose result is to be told. `typed`: the message below which the answer
    is written, where somebody did not say it. `says`: what is said, word for word, without a model; `reminder_id`: of
    the reminder that this is. `sources`: the ids of people whom what it says may be about. `earlier`: the turns with
    the beginnings of the question, oldest first, if an answer to them was begun too early.
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
    sources: tuple[str, ...] = ()
    earlier: tuple[Turn, ...] = ()

    @property
    def is_spoken(self) -> bool:
        """Return whether somebody said it just now, so that they may go on."""
        return self.utterance_id is not None and self.ended_at is not None and bool(self.asker_id)

    @property
    def is_wanted(self) -> bool:
        """Return whether somebody loses something if they do not hear the answer. Nobody asked for a remark."""
        return bool(self.asker_id) or self.reminder_id is not None

    @property
    def told_to(self) -> tuple[str, ...]:
        """Return the ids of whom the answer is told. Whoever spoke last need not be among them."""
        if self.asker_id is None:
            return tuple(dict.fromkeys(part.speaker_id for part in self.turn.parts))
        return (self.asker_id,) if self.asker_id else ()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return the turns that it is made of, oldest first."""
        return (*self.earlier, self.turn)

    @property
    def whole(self) -> Turn:
        """Return its turn, in which the asker says their whole question as one."""
        if not self.earlier:
            return self.turn
        theirs = [part for turn in self.turns for part in turn.parts if part.speaker_id == self.asker_id]
        said = [said for part in theirs for said in part.said_since(self.turn.started_at)]
        whole = TurnPart.spoken(theirs[-1].speaker_id, theirs[-1].speaker, said)
        others = [part for part in self.turn.parts if part.speaker_id != self.asker_id]
        return replace(self.turn, parts=(*others, whole))

    def continues(self, before: Question) -> Question:
        """Return the question that begins with `before`, of the same asker, and ends with this one.

        One that is too long is cut from the front.
        """
        turns = [*before.turns, self.turn]
        while len(turns) > 1 and sum(len(turn.text) for turn in turns) > MOST_CHARS:
            turns.pop(0)
        return replace(self, earlier=tuple(turns[:-1]))

    def is_same_as(self, other: Question) -> bool:
        """Return whether a reply to this question replies to `other` too: the same words of the same people, as the
        same turn, and in the same language, which the end of what somebody says may show.
        """
        return (
            self.utterance_id == other.utterance_id
            and (self.turn.seq, self.turn.kind, self.turn.parts) == (other.turn.seq, other.turn.kind, other.turn.parts)
            and self.earlier == other.earlier
            and (self.asker_id, self.reason, self.may_skip) == (other.asker_id, other.reason, other.may_skip)
            and (self.answers_without_model, self.language) == (other.answers_without_model, other.language)
        )


class Lapse(Enum):
    """Why nobody hears a reply that nobody stopped."""

    NONE = auto()
    SKIPPED = auto()  # the model decided to say nothing
    DROPPED = auto()  # it failed, and nobody waits for it
    UNHEARD = auto()  # it failed so that nobody can hear the bot: its voice, or the connection


@dataclass(slots=True, eq=False)
class Reply:
    """One reply. Times are monotonic seconds, durations milliseconds. What was heard of it is known at its end."""

    question: Question
    begun_at: float
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
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    def handle(self, event: ReplyEvent) -> ReplyAct | None:
        """Take note of what happens to it; return what is to be done (`reply_life`)."""
        self._life, act = step(self._life, event)
        if not self._life.held:
            self._released.set()
        if self._life.asked or self._life.stage is ReplyStage.WITHDRAWN:
            self._settled.set()
        return act

    @property
    def life(self) -> ReplyLife:
        """How far it has come by now."""
        if self.first_frame_at is not None:
            self.handle(WasHeard(self._sentences_heard()))
        return self._life

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

    @property
    def first_frame_at(self) -> float | None:
        """When its first sound was sent; None: not yet."""
        return next((piece.first_frame_at for piece in self.opened if piece.first_frame_at is not None), None)

    @property
    def answering(self) -> Answering | None:
        """The spoken question that it answers, as barge-in sees it; None: nobody said one just now."""
        question = self.question
        if not question.is_spoken or question.asker_id is None or question.ended_at is None:
            return None
        return Answering(int(question.asker_id), question.ended_at, self.begun_at, self.first_frame_at)

    def ask(self, question: Question) -> ReplyAct | None:
        """Take note that it is certainly wanted, as the reply to `question`, which is a turn now."""
        self.question = question
        return self.handle(Asked())

    async def until_released(self, *, ready: bool = True) -> None:
        """Wait until it may sound, or is withdrawn. `ready`: it waits for nothing else."""
        if ready:
            self.handle(Ready())
        await self._released.wait()

    async def until_settled(self) -> None:
        """Wait until its question is a recorded turn, or it is withdrawn."""
        await self._settled.wait()

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
        if self.question.may_skip and not self.pieces:
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
