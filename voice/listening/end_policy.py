"""How much silence ends somebody's speech, and after how much of it the bot may answer. Pure.

There are two clocks. Speech that nobody answers ends after one long silence, so that stories stay whole. Speech that
would be answered may be answered sooner, after the *gate*: the answer is usually ready by then, and its first sound is
the end of the speech. The gate follows from how finished the speech sounds, how long it was, and whether the person
pauses within what they say: people who ask a machine for something hardly do, and people who make up their sentences
always do. It may open too soon now and then, because an answer that comes too soon gives way and nothing is lost
(docs/decisions/0011-endpointing.md).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

# Seconds of silence after which speech ends that nobody answers. Of the pauses in sentences that people made up at the
# telephone, 7 % are longer; 1.1 s would end 8 % of them, and 1.3 s 5 %.
LONG_SILENCE_S: Final = 1.2
# The gate opens no sooner than this: no text is there by then, so no answer is.
SHORTEST_GATE_S: Final = 0.288
# Shorter silences belong to articulation.
SHORTEST_PAUSE_S: Final = 0.2
# Of so many of a person's utterances before this one pauses are remembered. With all of an evening's, the gate is no
# better, and whoever has told a story waits longer for the next answer.
REMEMBERED_UTTERANCES: Final = 3


@dataclass(frozen=True, slots=True)
class PauseEvidence:
    """What is known about one pause.

    `finished`: the probability (0-1) that the person sounds finished (`TurnEndDetector`); None: unknown. `speech_s`:
    seconds from the first to the last sound of the speech so far; None: unknown. `longest_pause_s`: see `OwnPauses`.
    """

    finished: float | None = None
    speech_s: float | None = None
    longest_pause_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLine:
    """The coefficients of the gate, in seconds. `benchmarks.endpoint.fit` chooses them for each end-of-turn model.

    `begin_s`: of somebody of whom nothing is known, before they have said anything. Less: `finished_s` for each unit of
    the log-odds that they sound finished, and `speech_s` for each unit of the logarithm of the seconds that they have
    spoken. More: `pause_s` for each of the logarithm of the longest pause.
    """

    begin_s: float = 1.06
    finished_s: float = 0.14
    speech_s: float = 0.9
    pause_s: float = 0.35


# That of Smart Turn, also where there is no model.
GATE: Final = GateLine()

# Probabilities are taken no closer to 0 and 1 than this: beyond, the model's differences mean nothing.
_SUREST = 0.005
# What is unknown speaks neither for an end nor against it.
_FINISHED_UNKNOWN, _SPEECH_UNKNOWN_S = 0.9, 2.0


def gate_s(evidence: PauseEvidence, line: GateLine = GATE) -> float:
    """Return the seconds of silence after which speech that would be answered may be answered."""
    return min(SHORTEST_GATE_S + max(0.0, hesitation_s(evidence, line)), LONG_SILENCE_S)


def hesitation_s(evidence: PauseEvidence, line: GateLine = GATE) -> float:
    """Return how much longer than the shortest gate to wait, without bounds: below 0 the end is surer than it needs to
    be.
    """
    sounds, spoken, pauses = features(evidence)
    return line.begin_s - line.finished_s * sounds - line.speech_s * spoken + line.pause_s * pauses


def features(evidence: PauseEvidence) -> tuple[float, float, float]:
    """Return what the gate is a line over: of how finished speech sounds, of its length, and of the longest pause."""
    finished = _FINISHED_UNKNOWN if evidence.finished is None else evidence.finished
    bounded = min(max(finished, _SUREST), 1 - _SUREST)
    speech_s = _SPEECH_UNKNOWN_S if evidence.speech_s is None else evidence.speech_s
    return (
        math.log(bounded / (1 - bounded)),
        math.log(0.5 + speech_s),
        math.log1p(evidence.longest_pause_s / SHORTEST_PAUSE_S),
    )


@dataclass(slots=True)
class OwnPauses:
    """The pauses after which one person went on, in what they say now and in the utterances before it."""

    _now_s: float = 0.0
    _before_s: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED_UTTERANCES))

    @property
    def longest_s(self) -> float:
        """Return the longest of them, in seconds; 0 without any."""
        return max((self._now_s, *self._before_s))

    def went_on(self, silence_s: float) -> None:
        """Remember that the person went on after so much silence. Silences of articulation do not count."""
        if silence_s >= SHORTEST_PAUSE_S:
            self._now_s = max(self._now_s, silence_s)

    def ended(self) -> None:
        """Remember the utterance, which has ended."""
        self._before_s.append(self._now_s)
        self._now_s = 0.0
