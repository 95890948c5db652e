"""Chooses the coefficients of `voice.listening.end_policy`: `python -m benchmarks.endpoint.fit SPEECH_DIR TALK_DIR`.

Run by hand; the results are written into `EndPolicy`. The real recordings and the tuning set of the free talk are read,
and count the same. The weights are those of a logistic regression of end against pause. The rest is a search for the
silences of the least expected cost, of cuts and of waiting, among those that reach both goals for the real recordings.
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
from benchmarks.endpoint.curve import outcome, policy_rule
from benchmarks.endpoint.free_talk import TalkSet
from benchmarks.endpoint.observed_pauses import PauseObserver, observe_all
from benchmarks.progress import NoProgress
from benchmarks.reply.recordings import load_recordings
from benchmarks.stats import percentile
from config.load import load
from voice.listening.end_policy import EndPolicy, PauseEvidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.endpoint.observed_pauses import ObservedPause

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
    unit = EndPolicy(finished_weight=1.0, sentence_weight=0.0), EndPolicy(finished_weight=0.0, sentence_weight=1.0)
    # A text that was cut off before its end says nothing about it.
    known_sets = [[pause for pause in each if pause.sentence_end is not None] for each in sets]
    pauses = [pause for each in known_sets for pause in each]
    share = np.concatenate([np.full(len(each), len(pauses) / len(sets) / len(each)) for each in known_sets])
    known = np.array([[1.0, *(policy.log_odds(_evidence(pause)) for policy in unit)] for pause in pauses])
    ends = np.array([float(pause.is_end) for pause in pauses])
    penalty = _RIDGE * np.diag([0.0, 1.0, 1.0])
    found = np.zeros(3)
    for _ in range(_STEPS):
        expected = 1 / (1 + np.exp(-known @ found))
        slope = known.T @ (share * (ends - expected)) - penalty @ found
        bend = (known * (share * expected * (1 - expected))[:, None]).T @ known + penalty
        found = found + np.linalg.solve(bend, slope)
    return round(float(found[1]), 2), round(float(found[2]), 2)


def silences(sets: Sequence[Sequence[ObservedPause]], finished_weight: float, sentence_weight: float) -> EndPolicy:
    """Return the policy with these weights that costs least. The first set is of real recordings.

    Where no policy reaches both goals for them, all are compared.
    """
    plain = EndPolicy(finished_weight=finished_weight, sentence_weight=sentence_weight)
    odds = [plain.log_odds(_evidence(pause)) for each in sets for pause in each if pause.is_end]
    levels = sorted({round(percentile(odds, share), 2) for share in _SHARES})
    tried = (
        replace(plain, sure=sure, unsure=unsure, shortest_s=shortest_s, longest_s=longest_s)
        for (unsure, sure), shortest_s, longest_s in itertools.product(
            itertools.combinations(levels, 2), _SHORTEST_S, _LONGEST_S
        )
    )
    return min(
        tried, key=lambda policy: (not reaches_goals(sets[0], policy), sum(cost_s(each, policy) for each in sets))
    )


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
    if pause.finished is None:
        raise LookupError("the coefficients need the end-of-turn model; `roomtone models pull turn` brings it")
    return PauseEvidence(pause.finished, pause.sentence_end)


def main() -> None:
    """Print the coefficients as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("speech", type=Path)
    parser.add_argument("talk", type=Path)
    folders = parser.parse_args()
    observer = PauseObserver(load())
    sets = [
        observe_all(load_recordings(folder).recordings, observer, NoProgress(), leads=leads)
        for folder, leads in ((folders.speech, LEADS), (folders.talk / TalkSet.TUNING, LEADS[:1]))
    ]
    policy = silences(sets, *weights(sets))
    told = {
        "policy": asdict(policy),
        "pauses": [len(each) for each in sets],
        "tuning": [outcome(each, policy_rule(policy=policy)).as_json() for each in sets],
    }
    sys.stdout.write(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
