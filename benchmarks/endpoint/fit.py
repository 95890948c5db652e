"""Chooses the coefficients of `voice.listening.end_policy`: `python -m benchmarks.endpoint.fit SPEECH_DIR TALK_DIR`.

Run by hand; the results are written into `EndPolicy`. Real recordings and the tuning set of the free talk are read, and
count the same. The weights are those of a logistic regression of end against pause. The rest is a search for the curve
of thresholds over silence with the least expected cost, of cuts and of waiting, among those that are within both bounds
for the real recordings.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.endpoint.free_talk import TalkSet
from benchmarks.figures import percentile
from benchmarks.listen.endpointing import CUT_SHARE, LEADS, outcome
from benchmarks.listen.observed_pauses import PauseObserver, observe_all
from benchmarks.listen.operating_points import operating_points
from benchmarks.recordings import load_recordings
from config.load import load
from voice.listening.end_policy import EndPolicy, ReadingWeights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.listen.observed_pauses import ObservedPause

# How soon half of the real ends must be known. The goal of `roomtone bench listen` is 500 ms, which these models do not
# reach with so few cuts (docs/decisions/0011-endpointing.md). As a bound it would leave nothing to choose from.
BOUND_P50_MS = 600.0
# How many seconds of waiting a cut is worth: the bot answers half a question and is interrupted, and the rest comes as
# a turn of its own. Half of the waiting that is counted is the median's, a tenth that of the slowest.
CUT_COST_S = 4.0
_P50_WEIGHT, _P95_WEIGHT = 1.0, 0.2
# How strongly the regression is drawn to small weights: some 200 pauses are few.
_RIDGE = 1.0
_STEPS = 50
# What the search tries: seconds for the sure and for the unsure, and shares of the ends below the two bounds. Nobody is
# waited for longer than 1.1 s: a quarter of the short questions wait that long, and their goal is missed already.
_SHORTEST_S = (0.35, 0.38, 0.42, 0.46, 0.5)
_LONGEST_S = (0.9, 1.0, 1.1)
_SHARES = (0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)
_NOTHING = ReadingWeights(finished=0.0, sentence=0.0, ends=0.0, goes_on=0.0, sure=1.0, unsure=0.0)
# One policy for each weight, which counts nothing else.
_UNITS = tuple(
    EndPolicy(reading=replace(_NOTHING, **{name: 1.0})) for name in ("finished", "sentence", "ends", "goes_on")
)


def reading_weights(sets: Sequence[Sequence[ObservedPause]]) -> ReadingWeights:
    """Return the weights of a logistic regression of end against pause; without the bounds, which `curve` finds."""
    # A text that was cut off before its end says nothing about it.
    read = [[pause for pause in each if pause.evidence is not None and pause.evidence.text_end] for each in sets]
    pauses = [pause for each in read for pause in each]
    share = np.concatenate([np.full(len(each), len(pauses) / len(read) / len(each)) for each in read])
    known = np.array([[1.0, *(_first_odds(pause, unit) for unit in _UNITS)] for pause in pauses])
    ends = np.array([float(pause.is_end) for pause in pauses])
    penalty = _RIDGE * np.diag([0.0] + [1.0] * len(_UNITS))
    found = np.zeros(1 + len(_UNITS))
    for _ in range(_STEPS):
        expected = 1 / (1 + np.exp(-known @ found))
        slope = known.T @ (share * (ends - expected)) - penalty @ found
        bend = (known * (share * expected * (1 - expected))[:, None]).T @ known + penalty
        found = found + np.linalg.solve(bend, slope)
    finished, sentence, opens, goes_on = (round(float(weight), 2) for weight in found[1:])
    return replace(_NOTHING, finished=finished, sentence=sentence, ends=opens, goes_on=goes_on)


def curve(sets: Sequence[Sequence[ObservedPause]], weights: ReadingWeights) -> EndPolicy:
    """Return the policy with these weights that costs least. The first set is of real recordings.

    Where no policy is within both bounds for them, all are compared.
    """
    plain = EndPolicy(reading=weights)
    odds = [_first_odds(pause, plain) for each in sets for pause in each if pause.is_end]
    levels = sorted({round(percentile(odds, share), 2) for share in _SHARES})
    tried = (
        replace(plain, reading=replace(weights, sure=sure, unsure=unsure), shortest_s=shortest_s, longest_s=longest_s)
        for (unsure, sure), shortest_s, longest_s in itertools.product(
            itertools.combinations(levels, 2), _SHORTEST_S, _LONGEST_S
        )
    )
    return min(
        tried,
        key=lambda policy: (
            not within_bounds(sets[0], policy),
            sum(cost_s(each, policy) for each in sets),
        ),
    )


def within_bounds(pauses: Sequence[ObservedPause], policy: EndPolicy) -> bool:
    """Return whether few enough of these pauses are cut, and the median end is known soon enough."""
    done = outcome(pauses, policy)
    return done.cut <= CUT_SHARE * done.inside and 1000 * percentile(done.known_after_s, 0.5) <= BOUND_P50_MS


def cost_s(pauses: Sequence[ObservedPause], policy: EndPolicy) -> float:
    """Return the expected cost of `policy` for one set, in seconds."""
    done = outcome(pauses, policy)
    waiting = _P50_WEIGHT * percentile(done.known_after_s, 0.5) + _P95_WEIGHT * percentile(done.known_after_s, 0.95)
    return CUT_COST_S * done.cut / max(1, done.inside) + waiting


def _first_odds(pause: ObservedPause, policy: EndPolicy) -> float:
    assert pause.evidence is not None, "observed with the end-of-turn model"
    return policy.log_odds(pause.evidence)


def main() -> None:
    """Print the policy with what it does to each set, and the operating points of the sources, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("speech", type=Path)
    parser.add_argument("talk", type=Path)
    folders = parser.parse_args()
    observer = PauseObserver(load())
    if not observer.judge.reads_text:
        raise LookupError("the coefficients need all models of pauses; `roomtone models pull` brings them")
    folder_of = {"speech": folders.speech, **{part.value: folders.talk / part for part in TalkSet}}
    observed = {
        name: observe_all(load_recordings(folder).recordings, observer, leads=LEADS if name == "speech" else LEADS[:1])
        for name, folder in folder_of.items()
    }
    tuned_on = [observed["speech"], observed[TalkSet.TUNING]]
    weights = reading_weights(tuned_on)
    policy = curve(tuned_on, weights)
    result = {
        "policy": asdict(policy),
        **{name: outcome(each, policy).as_json() for name, each in observed.items()},
        "operating_points": {name: operating_points(each) for name, each in observed.items()},
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
