"""Chooses the coefficients of the gate (`voice.listening.end_policy`): `python -m benchmarks.endpoint.fit SPEECH_DIR
TALK_DIR`.

Run by hand; the results are written into `GateLine`. SPEECH_DIR has recordings of people who read, and the folders
`commands` and `spontaneous`; TALK_DIR has the free talk, and the short questions of `roomtone bench asr` are where that
keeps them. The direction of the line is that of a logistic regression of end against pause, in which each kind of
speech has its share. How steep it is and where it ends is a search: among the lines within what mistakes may cost, the
one with the shortest waits. It is found on every other speaker and on the free talk for tuning. The other speakers and
the free talk for judging are kept apart, and judge it.
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

from benchmarks.asr.questions import FOLDER
from benchmarks.endpoint.free_talk import TalkSet
from benchmarks.figures import percentile
from benchmarks.listen.endpointing import (
    LEADS,
    TALKED_OVER_OF_REQUESTS,
    TALKED_OVER_SHARE,
    WORDS_HEARD,
    answered,
)
from benchmarks.listen.observed_pauses import UNKNOWN_SPEAKER, ObservedPause, PauseObserver, observe_all
from benchmarks.recordings import SpeechRecording, load_recordings
from config.load import load
from voice.listening.end_policy import GateLine, features, gate_s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


REQUESTS, QUESTIONS, MADE_UP, READ, TALK = "commands", "short questions", "spontaneous", "read", "free talk"
# The share of each set's ends, and of its pauses. Whoever asks a machine is to be told from whoever talks freely. Real
# pauses of made-up sentences keep the line from fitting synthetic ones alone. People who read ask nobody.
SHARES: Mapping[str, tuple[float, float]] = {
    REQUESTS: (1.0, 0.2),
    QUESTIONS: (1.0, 0.2),
    TALK: (0.25, 1.0),
    MADE_UP: (0.25, 0.25),
    READ: (0.25, 0.25),
}
# How strongly the regression is drawn to small weights.
_RIDGE = 1.0
_STEPS = 50
# Seconds for each unit of the log-odds, and the log-odds from which the gate is the shortest.
SLOPES_S = tuple(step / 20 for step in range(2, 13))
SURE = tuple(step / 10 for step in range(-15, 31))


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
    """Return the line with the shortest waits of those within the bounds, or near them."""
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
    """Return how far a line is outside the bounds, in shares of them, and the sum of the waits that count."""
    asked, _, talk = each = [answered(sets[name], partial(gate_s, line=line)) for name in (REQUESTS, QUESTIONS, TALK)]
    over = (
        (asked.talked_over or 0) / len(asked.known_after_s) / TALKED_OVER_OF_REQUESTS,
        (talk.talked_over or 0) / talk.inside / TALKED_OVER_SHARE,
        percentile(talk.words_heard, 0.95) / WORDS_HEARD if talk.words_heard else 0.0,
    )
    waits = sum(percentile(one.known_after_s, share) for one in each for share in (0.5, 0.95))
    return sum(max(0.0, share - 1) for share in over), waits


def halves(
    recordings: Sequence[SpeechRecording], observer: PauseObserver
) -> tuple[list[ObservedPause], list[ObservedPause]]:
    """Return the pauses of every other speaker, and those of the others, heard once. Where people are not told apart
    each recording is a speaker.
    """
    said: dict[str, list[SpeechRecording]] = defaultdict(list)
    for one in recordings:
        said[one.path.name if one.speaker == UNKNOWN_SPEAKER else one.speaker].append(one)
    found: tuple[list[ObservedPause], list[ObservedPause]] = ([], [])
    for number, speaker in enumerate(sorted(said)):
        found[number % 2].extend(observe_all(said[speaker], observer, leads=LEADS[:1]))
    return found


def main() -> None:
    """Print the line, and what it does to those whom it was fitted on and to those kept apart, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("speech", type=Path)
    parser.add_argument("talk", type=Path)
    folders = parser.parse_args()
    observer = PauseObserver(load().models)
    if not observer.hears_intonation:
        raise LookupError("the gate needs the end-of-turn model; `roomtone models pull` brings it")
    places = {
        REQUESTS: folders.speech / REQUESTS,
        QUESTIONS: FOLDER,
        MADE_UP: folders.speech / MADE_UP,
        READ: folders.speech,
    }
    # Of each set what it is fitted on, and what is kept apart.
    known: dict[str, Sequence[Sequence[ObservedPause]]] = {
        name: halves(load_recordings(place).recordings, observer) for name, place in places.items()
    }
    known[TALK] = [
        observe_all(load_recordings(folders.talk / part).recordings, observer, leads=LEADS[:1]) for part in TalkSet
    ]
    line = gate_line({name: fitted for name, (fitted, _) in known.items()})
    gate = partial(gate_s, line=line)
    result = {
        "line": asdict(line),
        **{
            part: {name: answered(each[number], gate).as_json() for name, each in known.items()}
            for number, part in enumerate(("fitted_on", "kept_apart"))
        },
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
