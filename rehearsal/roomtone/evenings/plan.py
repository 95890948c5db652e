"""The plan of a simulated evening: who does what, what fails, and when. It follows from a seed alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import Final

from rehearsal.fault_plan import FaultStep

NAMES: Final = ("Ada", "Ben", "Chloe", "Dmitri")
# Without this many turns nothing is folded.
_FEWEST_STEPS, _MOST_STEPS = 40, 90
_SOMETIMES = 0.5
# With so many nothing, little or much is folded soon.
_EARLIER = (0, 30, 58, 75)


class Act(StrEnum):
    """What happens in one step."""

    SAY = "say"
    ASK = "ask"  # the bot, by its name
    ORDER = "order"  # the bot to use a tool that waits for a press
    TYPE = "type"
    SHOW = "show"  # something new on a shared screen
    UNSHARE = "unshare"
    COME = "come"
    GO = "go"
    OPT_OUT = "opt out"
    OPT_IN = "opt in"
    AGREE = "agree"
    DISAGREE = "disagree"
    FORGET = "forget"
    PRESS = "press"
    DECLINE = "decline"
    SILENCE = "silence"
    LET_TALK = "let talk"
    LEAVE = "leave"  # somebody sends the bot away
    CALL = "call"  # somebody calls it
    BREAK = "break"
    MEND = "mend"
    DROP = "drop"  # the voice connection is lost for good
    RESTART = "restart"
    KILL = "kill"
    CALM = "calm"  # everything is mended, and one question is asked
    REST = "rest"


class Fault(StrEnum):
    """What fails."""

    DISK_ERROR = "disk error"
    DISK_HANG = "disk hang"
    DISK_LOST = "disk lost"
    MODEL_ERROR = "model error"
    MODEL_HANG = "model hang"
    MODEL_SLOW = "model slow"
    MODEL_GARBAGE = "model garbage"
    FOLD_ERROR = "fold error"
    FOLD_HANG = "fold hang"
    EARS_ERROR = "ears error"
    EARS_HANG = "ears hang"
    EARS_CRASH = "ears crash"
    VOICE_ERROR = "voice error"
    VOICE_HANG = "voice hang"
    CHAT = "chat"
    LINE = "line"  # the voice connection is down, and none can be made
    TOOL_ERROR = "tool error"
    TOOL_HANG = "tool hang"


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `after_s`: the pause before it. `who`: the id of a person. `words`: how many they say."""

    act: Act
    after_s: float
    who: int = 0
    words: int = 0

    def __str__(self) -> str:
        who = NAMES[self.who - 1] if self.who else ""
        words = str(self.words) if self.words else ""
        return " ".join(filter(None, (f"+{self.after_s:g}", who, self.act.value, words)))


@dataclass(frozen=True, slots=True)
class Plan:
    """One evening. `present`: who is there at first. `asks`: people are heard only once they have agreed.
    `earlier`: how many turns the session has already."""

    seed: int
    present: tuple[int, ...]
    asks: bool
    earlier: int
    steps: tuple[Step | FaultStep[Fault], ...]


# How often each act is tried, of those that are possible.
_WEIGHTS: Final[Mapping[Act, int]] = {
    Act.SAY: 300, Act.ASK: 90, Act.ORDER: 40, Act.TYPE: 130, Act.SHOW: 90, Act.UNSHARE: 12, Act.COME: 20, Act.GO: 14,
    Act.OPT_OUT: 12, Act.OPT_IN: 14, Act.AGREE: 20, Act.DISAGREE: 6, Act.FORGET: 12, Act.PRESS: 60, Act.DECLINE: 30,
    Act.SILENCE: 4, Act.LET_TALK: 8, Act.LEAVE: 3, Act.CALL: 40, Act.BREAK: 40, Act.MEND: 48, Act.DROP: 5,
    Act.RESTART: 3, Act.KILL: 7, Act.CALM: 12, Act.REST: 12,
}  # fmt: skip
# What mostly comes next: who is new is asked, a call is shown for a press, and who is sent away is called again.
_FOLLOWS: Final[Mapping[Act, Step]] = {
    Act.COME: Step(Act.AGREE, 1.0),
    Act.ORDER: Step(Act.PRESS, 6.0),
    Act.LEAVE: Step(Act.CALL, 2.0),
    Act.RESTART: Step(Act.CALL, 2.0),
}
_PAUSES_S = (0.0, 0.3, 1.0, 2.0, 4.0, 8.0)


def make_plan(seed: int) -> Plan:
    """Return the evening of a seed."""
    rng = Random(seed)  # noqa: S311 - no secret
    everybody = range(1, len(NAMES) + 1)
    present = sorted(rng.sample(everybody, rng.randint(2, len(NAMES))))
    asks = rng.random() < _SOMETIMES / 2
    steps: list[Step | FaultStep[Fault]] = [Step(Act.AGREE, 0.5, who) for who in present if asks]
    there, broken = list(present), list[Fault]()
    for _ in range(rng.randint(_FEWEST_STEPS, _MOST_STEPS)):
        possible = [act for act in _WEIGHTS if _is_possible(act, there, broken, asks=asks)]
        (act,) = rng.choices(possible, [_WEIGHTS[each] for each in possible])
        who = rng.choice([each for each in everybody if each not in there] if act is Act.COME else there)
        if act is Act.BREAK:
            broken.append(rng.choice([each for each in Fault if each not in broken]))
        elif act is Act.MEND:
            # The last one is mended.
            broken.append(broken.pop(rng.randrange(len(broken))))
        elif act in {Act.CALM, Act.KILL, Act.RESTART}:
            broken.clear()
        elif act is Act.COME:
            there.append(who)
        elif act is Act.GO:
            there.remove(who)
        after_s, words = rng.choice(_PAUSES_S), rng.randint(1, 6)
        match act:
            case Act.BREAK:
                steps.append(FaultStep(after_s, broken[-1]))
            case Act.MEND:
                steps.append(FaultStep(after_s, broken.pop(), mends=True))
            case _:
                steps.append(Step(act, after_s, who, words))
        follows = _FOLLOWS.get(act)
        if follows is not None and _is_possible(follows.act, there, broken, asks=asks):
            steps.append(replace(follows, who=who, words=rng.randint(1, 6)))
    return Plan(seed, tuple(present), asks, rng.choice(_EARLIER), tuple(steps))


def count_steps(plans: Iterable[Plan]) -> Counter[Act | Fault]:
    """Return how often each kind of step and of fault occurs."""
    counts: Counter[Act | Fault] = Counter()
    for step in (step for plan in plans for step in plan.steps):
        match step:
            case Step():
                counts[step.act] += 1
            case FaultStep(mends=True):
                counts[Act.MEND] += 1
            case _:
                counts.update((Act.BREAK, step.fault))
    return counts


def _is_possible(act: Act, there: list[int], broken: list[Fault], *, asks: bool) -> bool:
    return {
        Act.AGREE: asks,
        Act.DISAGREE: asks,
        Act.COME: len(there) < len(NAMES),
        Act.GO: len(there) > 1,
        # With everything broken an evening shows little.
        Act.BREAK: len(broken) < 2,
        Act.MEND: bool(broken),
    }.get(act, True)
