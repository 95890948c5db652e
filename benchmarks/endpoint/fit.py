"""Chooses the coefficients of `voice.listening.end_policy`: `python -m benchmarks.endpoint.fit SPEECH_DIR TALK_DIR`.

Run by hand; the results are written into `EndPolicy`. The real recordings and the tuning set of the free talk are read,
and count the same. The weights are those of a logistic regression of end against pause. The rest is a search for the
silences of the least expected cost, of cuts and of waiting, among those that reach both goals for the real recordings.
Where the model that reads texts is there, a second policy is fitted that uses it.
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

from benchmarks.endpoint.bench import CUT_SHARE, KNOWN_P50_MS, LEADS
from benchmarks.endpoint.curve import outcome, policy_rule, without_reading
from benchmarks.endpoint.free_talk import TalkSet
from benchmarks.endpoint.observed_pauses import PauseObserver, observe_all
from benchmarks.progress import NoProgress
from benchmarks.reply.recordings import load_recordings
from benchmarks.stats import percentile
from config.load import load
from voice.listening.end_policy import EndPolicy, ReadingWeights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.endpoint.observed_pauses import ObservedPause
    from voice.listening.end_policy import PauseEvidence

# How many seconds of waiting a cut is worth: the bot answers half a question and is interrupted, and the rest comes as
# a turn of its own. Half of the waiting that is counted is the median's, a tenth that of the slowest.
CUT_COST_S = 4.0
_P50_WEIGHT, _P95_WEIGHT = 1.0, 0.2
# How strongly the regression is drawn to small weights: some 200 pauses are few.
_RIDGE = 1.0
_STEPS = 50
# What the search tries: seconds for the sure and for the unsure, and shares of the ends below the two bounds. Nobody is
# waited for longer than 1.2 s: 5 % of the ends would be answered later than that.
_SHORTEST_S = (0.35, 0.38, 0.42, 0.46, 0.5)
_LONGEST_S = (0.9, 1.0, 1.1, 1.2)
_SHARES = (0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)


def weights(sets: Sequence[Sequence[ObservedPause]]) -> tuple[float, float]:
    """Return the weights of both probabilities' log-odds in a logistic regression of end against pause."""
    finished, sentence = _regression(
        # A text that was cut off before its end says nothing about it.
        [[pause for pause in each if pause.sentence_end is not None] for each in sets],
        [EndPolicy(finished_weight=1.0, sentence_weight=0.0), EndPolicy(finished_weight=0.0, sentence_weight=1.0)],
    )
    return finished, sentence


def reading_weights(sets: Sequence[Sequence[ObservedPause]]) -> ReadingWeights:
    """Return the weights where a language model has read the texts; without the bounds, which `silences` finds."""
    nothing = ReadingWeights(finished=0.0, sentence=0.0, ends=0.0, goes_on=0.0, sure=1.0, unsure=0.0)
    finished, sentence, ends, goes_on = _regression(
        [[pause for pause in each if pause.text_end is not None] for each in sets],
        [
            EndPolicy(reading=replace(nothing, finished=1.0)),
            EndPolicy(reading=replace(nothing, sentence=1.0)),
            EndPolicy(reading=replace(nothing, ends=1.0)),
            EndPolicy(reading=replace(nothing, goes_on=1.0)),
        ],
    )
    return replace(nothing, finished=finished, sentence=sentence, ends=ends, goes_on=goes_on)


def _regression(sets: Sequence[Sequence[ObservedPause]], units: Sequence[EndPolicy]) -> list[float]:
    """Return the weights of what each of `units` tells alone, in a logistic regression of end against pause."""
    pauses = [pause for each in sets for pause in each]
    share = np.concatenate([np.full(len(each), len(pauses) / len(sets) / len(each)) for each in sets])
    known = np.array([[1.0, *(policy.log_odds(_evidence(pause)) for policy in units)] for pause in pauses])
    ends = np.array([float(pause.is_end) for pause in pauses])
    penalty = _RIDGE * np.diag([0.0] + [1.0] * len(units))
    found = np.zeros(1 + len(units))
    for _ in range(_STEPS):
        expected = 1 / (1 + np.exp(-known @ found))
        slope = known.T @ (share * (ends - expected)) - penalty @ found
        bend = (known * (share * expected * (1 - expected))[:, None]).T @ known + penalty
        found = found + np.linalg.solve(bend, slope)
    return [round(float(weight), 2) for weight in found[1:]]


def silences(sets: Sequence[Sequence[ObservedPause]], plain: EndPolicy) -> EndPolicy:
    """Return the policy with the weights of `plain` that costs least. The first set is of real recordings.

    Where no policy reaches both goals for them, all are compared.
    """
    odds = [plain.log_odds(_evidence(pause)) for each in sets for pause in each if pause.is_end]
    levels = sorted({round(percentile(odds, share), 2) for share in _SHARES})
    tried = (
        replace(_bounded(plain, sure=sure, unsure=unsure), shortest_s=shortest_s, longest_s=longest_s)
        for (unsure, sure), shortest_s, longest_s in itertools.product(
            itertools.combinations(levels, 2), _SHORTEST_S, _LONGEST_S
        )
    )
    return min(
        tried, key=lambda policy: (not reaches_goals(sets[0], policy), sum(cost_s(each, policy) for each in sets))
    )


def _bounded(policy: EndPolicy, *, sure: float, unsure: float) -> EndPolicy:
    """Return a policy with other bounds of the log-odds."""
    if policy.reading is None:
        return replace(policy, sure=sure, unsure=unsure)
    return replace(policy, reading=replace(policy.reading, sure=sure, unsure=unsure))


def reaches_goals(pauses: Sequence[ObservedPause], policy: EndPolicy) -> bool:
    """Return whether few enough of these pauses are cut, and the median end is known soon enough."""
    done = outcome(pauses, policy_rule(policy=policy))
    known_p50_ms = 1000 * percentile(done.known_after_s, 0.5)
    return done.cut <= CUT_SHARE * done.inside and known_p50_ms <= KNOWN_P50_MS


def cost_s(pauses: Sequence[ObservedPause], policy: EndPolicy) -> float:
    """Return the expected cost of `policy` for one set, in seconds."""
    done = outcome(pauses, policy_rule(policy=policy))
    waiting = _P50_WEIGHT * percentile(done.known_after_s, 0.5) + _P95_WEIGHT * percentile(done.known_after_s, 0.95)
    return CUT_COST_S * done.cut / max(1, done.inside) + waiting


def _evidence(pause: ObservedPause) -> PauseEvidence:
    assert pause.evidence is not None, "observed with the end-of-turn model"
    return pause.evidence


def main() -> None:
    """Print the coefficients as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("speech", type=Path)
    parser.add_argument("talk", type=Path)
    folders = parser.parse_args()
    observer = PauseObserver(load())
    if not observer.has_turn_model:
        raise LookupError("the coefficients need the end-of-turn model; `roomtone models pull turn` brings it")
    sets = [
        observe_all(load_recordings(folder).recordings, observer, NoProgress(), leads=leads)
        for folder, leads in ((folders.speech, LEADS), (folders.talk / TalkSet.TUNING, LEADS[:1]))
    ]
    finished_weight, sentence_weight = weights(sets)
    plain = EndPolicy(finished_weight=finished_weight, sentence_weight=sentence_weight)
    fitted = {"heard": silences([without_reading(each) for each in sets], plain)}
    if observer.reads_text:
        fitted["read"] = silences(sets, replace(plain, reading=reading_weights(sets)))
    told = {
        "pauses": [len(each) for each in sets],
        **{
            name: {
                "policy": asdict(policy),
                "tuning": [outcome(each, policy_rule(policy=policy)).as_json() for each in sets],
            }
            for name, policy in fitted.items()
        },
    }
    sys.stdout.write(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
