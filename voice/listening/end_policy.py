"""How much silence ends somebody's speech, by what is known about the pause. Pure.

Two models look at the same pause from different sides: the end-of-turn model hears the intonation, and the recogniser
knows how likely a sentence ends where its text ends. A logistic regression makes one number of both, the log-odds that
the speech is over. The surer the end, the less silence is waited for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Probabilities are taken no closer to 0 and 1 than this: beyond, the models' differences mean nothing.
_SUREST = 0.005


@dataclass(frozen=True, slots=True)
class PauseEvidence:
    """What is known about one pause, as probabilities (0-1).

    `finished`: that the person sounds finished (`TurnEndDetector`). `sentence_end`: that a sentence ends where the
    recognised text ends (`Recognition.sentence_end_probability`); None: unknown.
    """

    finished: float
    sentence_end: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPolicy:
    """The coefficients. The room uses the defaults; benchmarks vary them.

    `benchmarks/endpoint/fit.py` chose them on 89 recordings of 12 people (70 pauses inside read speech) and 60
    synthetic utterances of free talk (88 pauses), both counting the same: the weights by logistic regression, the rest
    by a search for the least expected cost of cuts and waiting. Other free talk was kept apart and decided
    (docs/decisions/0011).
    """

    finished_weight: float = 0.15
    sentence_weight: float = 0.54
    # The weight of `finished` where the text is unknown: a recogniser at an endpoint, or one that takes long. 0.93 is
    # then not sure at all and 0.955 quite, as with the threshold of 0.94 that was best for it alone.
    finished_alone_weight: float = 0.68
    # From here the intonation decides alone, and nobody waits for the text. Lower, it ends what the text would not: at
    # 0.955 three more of 70 pauses in read speech, two of 88 and two of 76 in free talk. The answer is no sooner for
    # it in the median, because it waits for the same text (docs/decisions/0011).
    surely_finished: float = 0.985
    # The log-odds from which `shortest_s` of silence is enough, and below which `longest_s` is waited for. Between
    # them it changes evenly.
    sure: float = 2.05
    unsure: float = 1.73
    shortest_s: float = 0.46
    longest_s: float = 1.2

    def log_odds(self, evidence: PauseEvidence) -> float:
        """Return the weighted log-odds that the speech is over."""
        if evidence.sentence_end is None:
            return self.finished_alone_weight * _logit(evidence.finished)
        return self.finished_weight * _logit(evidence.finished) + self.sentence_weight * _logit(evidence.sentence_end)

    def silence_needed_s(self, evidence: PauseEvidence) -> float:
        """Return the seconds of silence that end the speech: less for surer evidence, within the two bounds."""
        if evidence.finished >= self.surely_finished:
            return self.shortest_s
        certainty = (self.log_odds(evidence) - self.unsure) / (self.sure - self.unsure)
        return self.shortest_s + (1 - min(max(certainty, 0.0), 1.0)) * (self.longest_s - self.shortest_s)


END_POLICY = EndPolicy()


def _logit(probability: float) -> float:
    bounded = min(max(probability, _SUREST), 1 - _SUREST)
    return math.log(bounded / (1 - bounded))
