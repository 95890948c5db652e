"""What the bot replies to. Most of it somebody has said; the rest was typed, or comes from nobody's words.

A question is one of five kinds, and each has what it needs: speech has its end and the decision to answer it, for its
asker may go on; a typed one has the message below which the answer is written; a remark has its reason alone. What is
asked of any kind is a function here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

from compaction.model import Turn, TurnPart

if TYPE_CHECKING:
    from bot.brain.decider import Decision, Reason
    from bot.brain.tools.frozen_calls import FrozenCall
    from bot.channel.port import TypedMessage

# What somebody says in several halves is one question of at most so many characters, like a turn in a prompt. The
# newest halves are kept.
MOST_CHARS = 1_200


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a person has said just now, so that they may go on. `utterance_id`: the speech it came from; `ended_at`:
    when that ended, monotonic seconds. `asker_id`: theirs, though others may speak in the same turn. `decision`: to
    answer it. `language`: the code of the language to answer in; empty: that of the conversation. `earlier`: the turns
    with the beginnings of the question, oldest first, if an answer to them was begun too early.
    """

    turn: Turn
    utterance_id: str
    ended_at: float
    asker_id: int
    decision: Decision
    language: str = ""
    earlier: tuple[Turn, ...] = ()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return the turns that it is made of, oldest first."""
        return (*self.earlier, self.turn)

    @property
    def whole(self) -> Turn:
        """Return its turn, in which the asker says their whole question as one."""
        if not self.earlier:
            return self.turn
        asker_id = str(self.asker_id)
        theirs = [part for turn in self.turns for part in turn.parts if part.speaker_id == asker_id]
        said = [said for part in theirs for said in part.as_utterances(self.turn.started_at)]
        whole = TurnPart.spoken(asker_id, theirs[-1].speaker, said)
        others = [part for part in self.turn.parts if part.speaker_id != asker_id]
        return replace(self.turn, parts=(*others, whole))

    def continues(self, before: Spoken) -> Spoken:
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
        return isinstance(other, Spoken) and self._essence == other._essence

    @property
    def _essence(self) -> tuple[object, ...]:
        return (
            (self.utterance_id, self.turn.seq, self.turn.kind, self.earlier, self.asker_id, self.language),
            tuple((part.speaker_id, part.text) for part in self.turn.parts),
            (self.decision.reason, self.decision.may_skip, self.decision.answers_without_model),
        )


@dataclass(frozen=True, slots=True)
class Typed:
    """What somebody has typed or said in a voice message, below which the answer is written."""

    turn: Turn
    message: TypedMessage


@dataclass(frozen=True, slots=True)
class Remark:
    """Nobody asked: the bot may say something after the last turn, for `reason`. The model may say nothing."""

    turn: Turn
    reason: Reason


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call that ran behind the talk, on the press of who asked or for long, whose result they are told."""

    turn: Turn
    call: FrozenCall


@dataclass(frozen=True, slots=True)
class DueReminder:
    """A reminder that is told now: `says`, word for word, without a model. `number`: in the store. `asker_id`: whose it
    is; None: they are not there. `sources`: the ids of people whom it may be about.
    """

    turn: Turn
    number: int
    says: str
    asker_id: int | None
    sources: tuple[str, ...]


Question: TypeAlias = Spoken | Typed | Remark | CallResult | DueReminder


def asker_id_of(question: Question) -> int | None:
    """Return who is told the answer, whoever spoke last; None: nobody asked, or they are not there."""
    match question:
        case Spoken() | DueReminder():
            return question.asker_id
        case Typed():
            return question.message.person.id
        case CallResult():
            return question.call.asker.user_id
        case Remark():
            return None
        case _ as never:
            assert_never(never)


def may_skip(question: Question) -> bool:
    """Return whether the model may decide to say nothing."""
    return question.decision.may_skip if isinstance(question, Spoken) else isinstance(question, Remark)


def whole_turn(question: Question) -> Turn:
    """Return the turn to answer, with all that its asker has asked, also in turns before it."""
    return question.whole if isinstance(question, Spoken) else question.turn


def language_of(question: Question) -> str:
    """Return the code of the language to answer in; empty: that of the conversation."""
    return question.language if isinstance(question, Spoken) else ""
