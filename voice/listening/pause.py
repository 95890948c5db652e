"""What is done while somebody is silent and may go on: a table without audio, clock or tasks.

Speech on which nobody acts ends after one long silence. Speech that would be answered may be answered sooner: once the
reply is ready and the silence has reached the *gate* (`end_policy.gate_s`), and nobody else has to be heard first. The
reply's first sound then ends it. If the person goes on before that, the pause is dropped with all that began in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeAlias

from voice.listening.end_policy import PauseEvidence, gate_s


class PauseVerdict(Enum):
    """What would become of the words if the speech were over."""

    UNANSWERED = auto()  # nobody acts on them: only the long silence ends the speech
    HELD = auto()  # a reply to them has begun and is held until its release
    DUE = auto()  # they are acted on, and there is no reply to wait for
    SOUNDING = auto()  # the reply to them was released: its first sound ends the speech


class PauseAct(Enum):
    """What the owner of a pause does."""

    JUDGE = auto()  # ask the end-of-turn model and the recogniser
    PREVIEW = auto()  # find out what would become of the words (`Previewed`)
    RELEASE = auto()  # act on the words: the gate is open
    END = auto()  # end the speech: the reply to it has begun to sound


@dataclass(frozen=True, slots=True)
class Began:
    """The person has fallen silent after so much speech, `longest_pause_s` as in `PauseEvidence`."""

    speech_s: float
    longest_pause_s: float


@dataclass(frozen=True, slots=True)
class Heard:
    """How finished the person sounds, 0-1; None: nothing is known of it, and nothing more will be."""

    finished: float | None


@dataclass(frozen=True, slots=True)
class TextKnown:
    """The words are known."""


@dataclass(frozen=True, slots=True)
class Previewed:
    """What would become of the words. Also told of a release that found another reply: that one is waited for."""

    verdict: PauseVerdict


@dataclass(frozen=True, slots=True)
class Silent:
    """The pause has lasted so many seconds. `others_first`: somebody else's words come before these. `ready`: the held
    reply could sound now, or goes no further before the end is certain. `sounding`: it has begun to sound.
    """

    seconds: float
    others_first: bool = False
    ready: bool = False
    sounding: bool = False


PauseEvent: TypeAlias = Began | Heard | TextKnown | Previewed | Silent
_UNKNOWN = PauseEvidence()


@dataclass(frozen=True, slots=True)
class PauseState:
    """One pause. `heard`: the end-of-turn model has answered or will not. `released`: the words are acted on."""

    evidence: PauseEvidence = _UNKNOWN
    heard: bool = False
    verdict: PauseVerdict | None = None
    released: bool = False

    @property
    def is_wanted(self) -> bool:
        """Whether somebody would act on the words: otherwise silence changes nothing."""
        return self.verdict in {PauseVerdict.HELD, PauseVerdict.DUE}


def step(state: PauseState, event: PauseEvent) -> tuple[PauseState, PauseAct | None]:
    """Return the state after `event`, and what is to be done."""
    match event:
        case Began(speech_s, longest_pause_s):
            known = replace(state.evidence, speech_s=speech_s, longest_pause_s=longest_pause_s)
            return replace(state, evidence=known), PauseAct.JUDGE
        case Heard(finished):
            return replace(state, heard=True, evidence=replace(state.evidence, finished=finished)), None
        case TextKnown():
            return state, PauseAct.PREVIEW
        case Previewed(verdict):
            return replace(state, verdict=verdict, released=False), None
        case Silent(sounding=sounding) if state.released:
            return state, PauseAct.END if sounding else None
        case Silent(seconds, others_first, ready):
            wanted = state.verdict is PauseVerdict.DUE or (state.verdict is PauseVerdict.HELD and ready)
            if not wanted or others_first or not state.heard or seconds < gate_s(state.evidence):
                return state, None
            return replace(state, released=True), PauseAct.RELEASE
