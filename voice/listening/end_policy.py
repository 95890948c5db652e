"""How much silence ends somebody's speech, and after how much of it the bot may answer. Pure.

There are two clocks. Speech that nobody answers ends after one long silence, so that stories stay whole. Speech that
would be answered may be answered sooner, after the *gate*: the answer is usually ready by then, and its first sound is
the end of the speech. Models look at the pause from different sides, and so do the length of the speech and the
person's own pauses. A logistic regression makes one number of them, the log-odds that the speech is over. The surer the
end, the sooner the gate opens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from voice.asr.port import TextEnd

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds of silence after which speech ends that nobody answers.
LONG_SILENCE_S: Final = 1.2
# The gate opens no sooner than this: an answer is hardly ever ready by then.
SHORTEST_GATE_S: Final = 0.288
# A person's pauses are learnt from so many of their utterances before this one. Shorter silences than
# `SHORTEST_PAUSE_S` belong to articulation.
LEARNT_FROM: Final = 5
SHORTEST_PAUSE_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class PauseEvidence:
    """What is known about one pause. None: unknown.

    `finished`: the probability (0-1) that the person sounds finished (`TurnEndDetector`). `sentence_end`: that a
    sentence ends where the recognised text ends (`Recognition.sentence_end_probability`). `text_end`: what the words
    make expect next (`Recognition.text_end`). `speech_s`: the seconds from the first to the last sound of the speech so
    far. `pauses_s`: the pauses of `SHORTEST_PAUSE_S` and more after which the person went on, in this speech and in
    their last `LEARNT_FROM` utterances.
    """

    finished: float | None = None
    sentence_end: float | None = None
    text_end: TextEnd | None = None
    speech_s: float | None = None
    pauses_s: tuple[float, ...] = ()


# Weights of the log-odds (docs/decisions/0011-endpointing.md; `benchmarks.endpoint.fit` chooses them).
FINISHED_WEIGHT: Final = 0.26
SENTENCE_END_WEIGHT: Final = 0.41
TEXT_ENDS_WEIGHT: Final = 0.52
# Of the logarithm of the seconds: the first words are seldom the whole.
SPEECH_WEIGHT: Final = 1.64
# For each second of the person's usual pause.
USUAL_PAUSE_WEIGHT: Final = -4.53
BIAS: Final = -1.8
# From these log-odds on the gate is the shortest, and each one less is so many seconds more.
SURE: Final = 0.3
SLOPE_S: Final = 0.3

# Probabilities are taken no closer to 0 and 1 than this: beyond, the models' differences mean nothing.
_SUREST = 0.005
# The same for what the language model expects next, where small probabilities mean something.
_SUREST_READ = 0.0003
# A person's usual pause is the mean of what they are known by and of one that is this short.
_PAUSE_OF_A_STRANGER_S = 0.1
# What is unknown speaks neither for an end nor against it.
_FINISHED_UNKNOWN, _SENTENCE_END_UNKNOWN, _ENDS_UNKNOWN, _SPEECH_UNKNOWN_S = 0.85, 0.93, 0.12, 2.0


def gate_s(evidence: PauseEvidence) -> float:
    """Return the seconds of silence after which speech that would be answered may be answered."""
    return min(SHORTEST_GATE_S + SLOPE_S * max(0.0, SURE - log_odds(evidence)), LONG_SILENCE_S)


def log_odds(evidence: PauseEvidence) -> float:
    """Return the weighted log-odds that the speech is over."""
    finished = _FINISHED_UNKNOWN if evidence.finished is None else evidence.finished
    sentence_end = _SENTENCE_END_UNKNOWN if evidence.sentence_end is None else evidence.sentence_end
    ends = _ENDS_UNKNOWN if evidence.text_end is None else evidence.text_end.ends
    speech_s = _SPEECH_UNKNOWN_S if evidence.speech_s is None else evidence.speech_s
    return (
        BIAS
        + FINISHED_WEIGHT * _logit(finished, _SUREST)
        + SENTENCE_END_WEIGHT * _logit(sentence_end, _SUREST)
        + TEXT_ENDS_WEIGHT * _logit(ends, _SUREST_READ)
        + SPEECH_WEIGHT * math.log(speech_s + 0.5)
        + USUAL_PAUSE_WEIGHT * usual_pause_s(evidence.pauses_s)
    )


def usual_pause_s(pauses_s: tuple[float, ...]) -> float:
    """Return how long a person's pauses usually are, who has paused so long."""
    return (_PAUSE_OF_A_STRANGER_S + sum(pauses_s)) / (1 + len(pauses_s))


def _logit(probability: float, surest: float) -> float:
    bounded = min(max(probability, surest), 1 - surest)
    return math.log(bounded / (1 - bounded))


_FINISHED_TEXT, _UNFINISHED_TEXT = TextEnd(ends=1.0, goes_on=0.0), TextEnd(ends=0.0, goes_on=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingWeights:
    """The coefficients where the text was read: weights of the log-odds, and the two bounds of `EndPolicy`."""

    finished: float
    sentence: float
    ends: float
    goes_on: float
    sure: float
    unsure: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPolicy:
    """The coefficients. The room uses `END_POLICY`; benchmarks vary them.

    `benchmarks.endpoint.fit` chose `reading` and both silences (docs/decisions/0011-endpointing.md), on 89 recordings
    of 12 people (146 pauses inside read speech, heard twice) and 60 synthetic utterances of free talk (88 pauses),
    both counting the same. Among the curves that cut at most 6 % of the read pauses and know half of the read ends
    within 0.6 s, this one has the least expected cost of cuts and waiting. The weights where no text was read are of
    an earlier search on the same recordings.
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
    shortest_s: float = 0.42
    longest_s: float = 1.1
    # Where the text was read. None: what the words make expect counts for nothing.
    reading: ReadingWeights | None = None

    def log_odds(self, evidence: PauseEvidence) -> float:
        """Return the weighted log-odds that the speech is over."""
        if evidence.sentence_end is None:
            return self.finished_alone_weight * _logit(evidence.finished or 0.0, _SUREST)
        heard, marked = _logit(evidence.finished or 0.0, _SUREST), _logit(evidence.sentence_end, _SUREST)
        reading, text_end = self._reading_of(evidence), evidence.text_end
        if reading is None or text_end is None:
            return self.finished_weight * heard + self.sentence_weight * marked
        return (
            reading.finished * heard
            + reading.sentence * marked
            + reading.ends * _logit(text_end.ends, _SUREST_READ)
            - reading.goes_on * _logit(text_end.goes_on, _SUREST_READ)
        )

    def silence_needed_s(self, evidence: PauseEvidence) -> float:
        """Return the seconds of silence that end the speech: less for surer evidence, within the two bounds."""
        if evidence.finished is not None and evidence.finished >= self.surely_finished:
            return self.shortest_s
        bounds = self._reading_of(evidence) or self
        certainty = (self.log_odds(evidence) - bounds.unsure) / (bounds.sure - bounds.unsure)
        return self.shortest_s + (1 - min(max(certainty, 0.0), 1.0)) * (self.longest_s - self.shortest_s)

    def silences_with_text_s(self, evidence: PauseEvidence) -> tuple[float, float]:
        """Return the least and the most silence that may be needed once the text of this pause is known."""
        needed = [self.silence_needed_s(each) for each in self._texts(evidence)]
        return min(needed), max(needed)

    def _reading_of(self, evidence: PauseEvidence) -> ReadingWeights | None:
        """Return the coefficients for a text that was read; None: it was not, or nothing is known of its end."""
        return None if evidence.sentence_end is None or evidence.text_end is None else self.reading

    def _texts(self, evidence: PauseEvidence) -> Iterator[PauseEvidence]:
        """Yield the surest evidence of both kinds that a text can give."""
        for sentence_end, text_end in ((1.0, _FINISHED_TEXT), (0.0, _UNFINISHED_TEXT)):
            yield replace(evidence, sentence_end=sentence_end)
            if self.reading is not None:
                yield replace(evidence, sentence_end=sentence_end, text_end=text_end)


END_POLICY = EndPolicy(
    reading=ReadingWeights(finished=0.16, sentence=0.21, ends=0.72, goes_on=0.3, sure=1.43, unsure=1.36)
)
