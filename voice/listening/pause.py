"""What is done while somebody is silent and may go on: a table without audio, clock or tasks.

A silence says little. After 0.3 s people who ask a short question are done, and people who make up a sentence have
only drawn breath. Whoever waits long enough to be sure answers late; whoever does not wait talks over people. So the
waiting is used: whatever an answer needs is begun in the pause, and thrown away if the pause was none.

A pause goes through four steps, and each can come before or after the others:

1. It has *begun*. The end-of-turn model is asked how finished the person sounds, and the recogniser what they said.
   Both answers come later (`Heard`, `TextKnown`).
2. With the words it can be found out what would become of them (`Previewed`). Most are for nobody here: then only the
   long silence ends the speech, and nothing more is done. Others are for the bot: a reply to them is begun and *held*,
   which means that it is made and that nobody hears it (`bot.brain.reply_life`). A few are acted on without a reply.
3. The silence lasts. At the *gate* (`end_policy.gate_s`) it is long enough for an answer, given how finished the person
   sounds, how long they spoke and how they pause. If the reply is ready by then and nobody else has to be heard first,
   it is *released*. If it is not ready, the silence goes on, and it is released as soon as it is.
4. The first sound of the reply *ends* the speech, and the words become a turn. Until then the person may go on as if
   nothing had been: the owner drops the pause, and with it all that began in it.

The silence is counted on the person's own time line, in windows of sound (`voice.listening.speaker`). So a process
that stands still for a moment takes nobody for finished, and a test needs no time.

The owner (`bot.conversation.pauses`) tells the table what happens and does what it says. The table keeps what is known
of one pause. After its release a pause ends, unless the release has found another reply: then that one is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeAlias

from voice.listening.end_policy import GATE, GateLine, PauseEvidence, gate_s


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
    """How finished the person sounds, 0-1; None: nothing is known of it, and nothing more will be. `line`: of the gate,
    for the model that has heard it.
    """

    finished: float | None
    line: GateLine = GATE


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
    line: GateLine = GATE

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
        case Heard(finished, line):
            known = replace(state.evidence, finished=finished)
            return replace(state, heard=True, evidence=known, line=line), None
        case TextKnown():
            return state, PauseAct.PREVIEW
        case Previewed(verdict):
            return replace(state, verdict=verdict, released=False), None
        case Silent(sounding=sounding) if state.released:
            return state, PauseAct.END if sounding else None
        case Silent(seconds, others_first, ready):
            wanted = state.verdict is PauseVerdict.DUE or (state.verdict is PauseVerdict.HELD and ready)
            if not wanted or others_first or not state.heard or seconds < gate_s(state.evidence, state.line):
                return state, None
            return replace(state, released=True), PauseAct.RELEASE
