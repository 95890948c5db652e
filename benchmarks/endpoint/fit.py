"""Chooses the coefficients of the gate (`voice.listening.end_policy`): `python -m benchmarks.endpoint.fit SPEECH_DIR
TALK_DIR`.

Run by hand; the results are written into `GateLine`. SPEECH_DIR has recordings of people who read, and the folders
`commands` and `spontaneous`; TALK_DIR has the free talk. The direction of the line is that of a logistic regression of
end against pause, in which each kind of speech has its share. How steep it is and where it ends is a search: among the
lines that answer requests soon enough and talk over few of those who talk freely, the one that lets these wait the
least. All of it is done again without each sixth of the speakers, who are then judged by it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections import defaultdict
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.endpoint.free_talk import TalkSet
from benchmarks.figures import percentile
from benchmarks.listen.endpointing import KNOWN_P50_MS, KNOWN_P95_MS, LEADS, Outcome, answered, both_clocks
from benchmarks.listen.observed_pauses import UNKNOWN_SPEAKER, PauseObserver, observe_all
from benchmarks.recordings import load_recordings
from config.load import load
from voice.listening.end_policy import GateLine, features, gate_s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.listen.observed_pauses import ObservedPause
    from benchmarks.recordings import SpeechRecording

    # The pauses of each speaker.
    BySpeaker = Mapping[str, Sequence[ObservedPause]]

REQUESTS, MADE_UP, READ, TALK = "commands", "spontaneous", "read", TalkSet.TUNING.value
# The share of each set's ends, and of its pauses. Whoever asks a machine is to be told from whoever talks freely. Real
# pauses of made-up sentences keep the line from fitting synthetic ones alone. People who read ask nobody.
SHARES: Mapping[str, tuple[float, float]] = {
    REQUESTS: (1.0, 0.2),
    TALK: (0.25, 1.0),
    MADE_UP: (0.25, 0.25),
    READ: (0.25, 0.25),
}
# How strongly the regression is drawn to small weights.
_RIDGE = 1.0
_STEPS = 50
# The share of pauses that may be talked over in free talk. The goal is 6 %.
TALKED_OVER = 0.05
# Seconds for each unit of the log-odds, and the log-odds from which the gate is the shortest.
SLOPES_S = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
SURE = tuple(step / 10 for step in range(-10, 31))
PARTS = 6


def direction(sets: Mapping[str, Sequence[ObservedPause]]) -> tuple[float, ...]:
    """Return the bias and the weights of a logistic regression of end against pause."""
    rows: list[tuple[float, ...]] = []
    ends: list[bool] = []
    shares: list[float] = []
    for name, pauses in sets.items():
        for is_end, share in zip((True, False), SHARES[name], strict=True):
            kind = [pause for pause in pauses if pause.is_end is is_end]
            rows += [(1.0, *features(pause.evidence)) for pause in kind]
            ends += [is_end] * len(kind)
            shares += [100 * share / len(kind)] * len(kind)
    known, wanted, weight = np.array(rows), np.array(ends, np.float64), np.array(shares)
    # So that one penalty suits all of them.
    middle, spread = known.mean(axis=0), known.std(axis=0)
    middle[0], spread[0] = 0.0, 1.0
    known = (known - middle) / spread
    penalty = _RIDGE * np.diag([0.0] + [1.0] * (known.shape[1] - 1))
    found = np.zeros(known.shape[1])
    for _ in range(_STEPS):
        expected = 1 / (1 + np.exp(-known @ found))
        slope = known.T @ (weight * (wanted - expected)) - penalty @ found
        bend = (known * (weight * expected * (1 - expected))[:, None]).T @ known + penalty
        found = found + np.linalg.solve(bend, slope)
    weights = found / spread
    weights[0] -= float(weights[1:] @ middle[1:])
    return tuple(float(each) for each in weights)


def gate_line(sets: Mapping[str, Sequence[ObservedPause]]) -> GateLine:
    """Return the line that lets those who talk freely wait the least, among those within the bounds, or near them."""
    bias, finished, speech, pause = direction(sets)
    lines = [
        GateLine(
            begin_s=round(slope_s * (sure - bias), 2),
            finished_s=round(slope_s * finished, 2),
            speech_s=round(slope_s * speech, 2),
            pause_s=round(-slope_s * pause, 2),
        )
        for slope_s, sure in itertools.product(SLOPES_S, SURE)
    ]
    return min(lines, key=lambda line: _cost(sets, line))


def _cost(sets: Mapping[str, Sequence[ObservedPause]], line: GateLine) -> tuple[float, float]:
    """Return how far a line is outside the bounds, in shares of them, and the mean time that free talk waits."""
    asked, talk = (answered(sets[name], partial(gate_s, line=line)) for name in (REQUESTS, TALK))
    over = (
        1000 * percentile(asked.known_after_s, 0.5) / KNOWN_P50_MS,
        1000 * percentile(asked.known_after_s, 0.95) / KNOWN_P95_MS,
        (talk.talked_over or 0) / talk.inside / TALKED_OVER,
    )
    return sum(max(0.0, each - 1) for each in over), float(np.mean(talk.known_after_s))


def held_out(sets: Mapping[str, BySpeaker]) -> dict[str, Outcome]:
    """Return what is done to each set by lines that were found without the speaker."""
    judged: dict[str, list[Outcome]] = defaultdict(list)
    for part in range(PARTS):
        kept: dict[str, list[ObservedPause]] = defaultdict(list)
        apart: dict[str, list[ObservedPause]] = defaultdict(list)
        for name, speakers in sets.items():
            for number, pauses in enumerate(speakers.values()):
                (apart if number % PARTS == part else kept)[name].extend(pauses)
        line = gate_line(kept)
        for name, pauses in apart.items():
            judged[name].append(answered(pauses, partial(gate_s, line=line)))
    return {
        name: Outcome(
            sum(each.inside for each in parts),
            sum(each.cut for each in parts),
            tuple(itertools.chain.from_iterable(each.known_after_s for each in parts)),
            sum(each.talked_over or 0 for each in parts),
        )
        for name, parts in judged.items()
    }


def by_speaker(recordings: Sequence[SpeechRecording], observer: PauseObserver) -> dict[str, list[ObservedPause]]:
    """Return the pauses of each speaker, heard once, and of each recording where people are not told apart."""
    said: dict[str, list[SpeechRecording]] = defaultdict(list)
    for one in recordings:
        said[one.path.name if one.speaker == UNKNOWN_SPEAKER else one.speaker].append(one)
    return {speaker: observe_all(each, observer, leads=LEADS[:1]) for speaker, each in said.items()}


def main() -> None:
    """Print the line, with what it does to each set, and what a line does to those who were not fitted on, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("speech", type=Path)
    parser.add_argument("talk", type=Path)
    folders = parser.parse_args()
    observer = PauseObserver(load().models)
    if not observer.hears_intonation:
        raise LookupError("the gate needs the end-of-turn model; `roomtone models pull` brings it")
    places = {
        REQUESTS: folders.speech / REQUESTS,
        MADE_UP: folders.speech / MADE_UP,
        READ: folders.speech,
        TALK: folders.talk / TALK,
    }
    sets = {name: by_speaker(load_recordings(place).recordings, observer) for name, place in places.items()}
    whole = {name: [pause for each in speakers.values() for pause in each] for name, speakers in sets.items()}
    result = {
        "line": asdict(gate_line(whole)),
        "held_out": {name: judged.as_json() for name, judged in held_out(sets).items()},
        **{name: both_clocks(pauses, addressed=True) for name, pauses in whole.items()},
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
