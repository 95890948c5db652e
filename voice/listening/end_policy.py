"""How much silence ends somebody's speech, and after how much of it the bot may answer. Pure.

There are two clocks. Speech that nobody answers ends after one long silence, so that stories stay whole. Speech that
would be answered may be answered sooner, after the *gate*: the answer is usually ready by then, and its first sound is
the end of the speech. The gate follows from how finished the speech sounds, how long it was, and whether the person
pauses within what they say: people who ask a machine for something hardly do, and people who make up their sentences
always do (docs/decisions/0011-endpointing.md).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from voice.asr.port import TextEnd

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds of silence after which speech ends that nobody answers. Of the pauses in sentences that people made up at the
# telephone, 5 % are longer; 1.1 s would end 8 % of them, and 1.5 s 2 %.
LONG_SILENCE_S: Final = 1.3
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
    # The next two are of `EndPolicy` alone.
    sentence_end: float | None = None
    text_end: TextEnd | None = None
    speech_s: float | None = None
    longest_pause_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLine:
    """The coefficients of the gate, in seconds. `benchmarks.endpoint.fit` chooses them; the room uses `GATE`.

    `begin_s`: of somebody of whom nothing is known, before they have said anything. Less: `finished_s` for each unit of
    the log-odds that they sound finished, and `speech_s` for each unit of the logarithm of the seconds that they have
    spoken. More: `pause_s` for each of the logarithm of the longest pause.
    """

    begin_s: float = 2.1
    finished_s: float = 0.2
    speech_s: float = 1.7
    pause_s: float = 0.58


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


# The policy of `endpointing` as long as it knows one clock.
_SUREST_READ = 0.0003
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
            return self.finished_alone_weight * _logit(evidence.finished or 0.0)
        heard, marked = _logit(evidence.finished or 0.0), _logit(evidence.sentence_end)
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


def _logit(probability: float, surest: float = _SUREST) -> float:
    bounded = min(max(probability, surest), 1 - surest)
    return math.log(bounded / (1 - bounded))
