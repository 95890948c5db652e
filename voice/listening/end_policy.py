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

    They were chosen on 89 recordings of 12 people (146 pauses inside read speech, heard twice) and 60 synthetic
    utterances of free talk (88 pauses), both counting the same, by the rule of `benchmarks/endpoint/fit.py`, tried with
    more weights than its regression gives: the least expected cost of cuts and waiting, where at most 6 % of the read
    pauses are cut and half of the read ends are known within 0.6 s (docs/decisions/0011).
    """

    finished_weight: float = 0.35
    sentence_weight: float = 0.8
    # The weight of `finished` where the text is unknown: a recogniser at an endpoint, or one that takes long. 0.92 is
    # then not sure at all and 0.955 quite, as with the threshold of 0.94 that was best for it alone.
    finished_alone_weight: float = 1.3
    # From here the intonation decides alone, and nobody waits for the text. Lower, it ends what the text would not: at
    # 0.955 three more of 70 pauses in read speech, two of 88 and two of 76 in free talk. The answer is no sooner for
    # it in the median, because it waits for the same text (docs/decisions/0011).
    surely_finished: float = 0.985
    # The log-odds from which `shortest_s` of silence is enough, and below which `longest_s` is waited for. Between
    # them it changes evenly.
    sure: float = 3.97
    unsure: float = 3.13
    shortest_s: float = 0.46
    longest_s: float = 1.1

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
