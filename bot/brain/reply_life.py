"""The life of one reply: a table of what may happen to it, without sound, tasks or clock. `replier` is its shell.

A reply is begun before anybody knows that it is wanted. Somebody pauses after a question; the pause may be its end, and
an answer that is begun only then comes a second late. So the reply is made at once and *held*: its first sentence is
ready, and nobody hears it. Then one of two things happens. The silence lasts, and the reply is *released*: its first
sound ends the question, which becomes a turn soon afterwards (*asked*). Or the person goes on, and the reply is
*withdrawn*: nothing was heard, so nothing is recorded.

Nobody can tell an end from a pause for certain, so a released reply may turn out to be too early. People do that all
day: they begin, give way within a syllable, let the other end, and answer the whole. Nobody minds, because nothing is
lost. Here, too, a reply that was begun too early costs nothing:

- If its asker goes on, it *gave way*: the question continues, and the whole of it gets an answer.
- If the words of another person stop it, it is *owed*: it is given afterwards, from its beginning.
- In both cases what was heard of it counts only from one whole sentence on. Then it is a turn like each other.

Three ways lead out of a life that was wanted: the reply is recorded as far as it was heard, its question goes on, or it
is owed. None leads to an answer that nobody gets. The property test plays random orders of events against that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeAlias


class ReplyStage(Enum):
    """How far a reply has come."""

    BEGUN = auto()  # it is being made, and held
    READY = auto()  # held; it could sound now, or goes no further before somebody certainly wants it
    RELEASED = auto()  # it sounds as soon as it can
    HEARD = auto()  # its first frame was sent
    STOPPED = auto()  # nothing more of it is played
    WITHDRAWN = auto()  # nobody wants it, and it counts as never begun


class Stop(Enum):
    """Why nothing more of a reply is played."""

    WENT_ON = auto()  # its asker goes on: the question was not over
    TALKED_OVER = auto()  # another person's words stopped it
    INTERRUPTED = auto()  # its asker has listened for some time, and says something
    SILENCED = auto()  # somebody wants silence, what it was made of has changed, or the room closes


class Fate(Enum):
    """What becomes of a reply that is over."""

    RECORDED = auto()  # what was heard of it is a turn, and nothing if nothing was
    GAVE_WAY = auto()  # nothing of it counts: the question goes on
    OWED = auto()  # nothing of it counts: it is given afterwards


class ReplyAct(Enum):
    """What the owner of a reply does."""

    PLAY = auto()  # let its sound play
    DROP = auto()  # stop making it, and play nothing of it
    SILENCE = auto()  # play nothing more of it, and end making it


@dataclass(frozen=True, slots=True)
class Ready:
    """It could sound now, or it needs something that waits for its release."""


@dataclass(frozen=True, slots=True)
class MaySound:
    """The silence has lasted long enough for an answer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Its question is a recorded turn, and certain."""


@dataclass(frozen=True, slots=True)
class WasHeard:
    """Its first frame was sent. `sentences`: how many whole ones of the answer were heard so far."""

    sentences: int = 0


@dataclass(frozen=True, slots=True)
class Stopped:
    """Somebody or something stops it."""

    by: Stop


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The person goes on before the question became a turn, or it is not answered after all."""


ReplyEvent: TypeAlias = Ready | MaySound | Asked | WasHeard | Stopped | Withdrawn


@dataclass(frozen=True, slots=True)
class ReplyLife:
    """One reply. `asked`: its question is a recorded turn. `sentences`: the whole sentences that were heard of it.
    `stop`: why nothing more of it is played.
    """

    stage: ReplyStage = ReplyStage.BEGUN
    asked: bool = False
    sentences: int = 0
    stop: Stop | None = None

    @property
    def held(self) -> bool:
        """Whether nothing of it may sound yet."""
        return self.stage in {ReplyStage.BEGUN, ReplyStage.READY}

    @property
    def fate(self) -> Fate:
        """Return what becomes of it now that it is over, if it was not withdrawn."""
        if self.sentences:
            return Fate.RECORDED
        match self.stop:
            case Stop.WENT_ON:
                return Fate.GAVE_WAY
            case Stop.TALKED_OVER:
                return Fate.OWED
            case _:
                return Fate.RECORDED


def step(life: ReplyLife, event: ReplyEvent) -> tuple[ReplyLife, ReplyAct | None]:
    """Return the life after `event`, and what is to be done."""
    match event:
        case _ if life.stage is ReplyStage.WITHDRAWN:
            return life, None
        case Ready() if life.stage is ReplyStage.BEGUN:
            return replace(life, stage=ReplyStage.READY), None
        case MaySound() if life.held:
            return replace(life, stage=ReplyStage.RELEASED), ReplyAct.PLAY
        case Asked() if life.held:
            return replace(life, stage=ReplyStage.RELEASED, asked=True), ReplyAct.PLAY
        case Asked():
            return replace(life, asked=True), None
        case WasHeard(sentences) if life.stage in {ReplyStage.RELEASED, ReplyStage.HEARD}:
            return replace(life, stage=ReplyStage.HEARD, sentences=max(life.sentences, sentences)), None
        case WasHeard(sentences) if life.stage is ReplyStage.STOPPED:
            # How much was heard until the stop is known afterwards.
            return replace(life, sentences=max(life.sentences, sentences)), None
        case Stopped(by) if life.stage in {ReplyStage.RELEASED, ReplyStage.HEARD}:
            return replace(life, stage=ReplyStage.STOPPED, stop=by), ReplyAct.SILENCE
        case Stopped(Stop.SILENCED) if life.stage is ReplyStage.STOPPED:
            # Who wants silence is owed nothing.
            return replace(life, stop=Stop.SILENCED), None
        case Stopped() | Withdrawn() if life.held or (isinstance(event, Withdrawn) and not life.asked):
            return replace(life, stage=ReplyStage.WITHDRAWN), ReplyAct.DROP
        case _:
            return life, None
