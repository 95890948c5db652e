"""Choosing the coefficients of the gate."""

from __future__ import annotations

import numpy as np

from benchmarks.endpoint.fit import MADE_UP, QUESTIONS, READ, REQUESTS, TALK, direction, gate_line
from benchmarks.listen.endpointing import KNOWN_P50_MS, TALKED_OVER_SHARE, WORDS_HEARD, answered
from benchmarks.listen.observed_pauses import ObservedPause
from voice.listening.end_policy import PauseEvidence, gate_s


def _pauses(sound: float, pause_s: float, *, ends: int, inside: int, seed: int) -> list[ObservedPause]:
    """Return pauses of people who sound so finished at their ends, and whose longest pause is so long."""
    draw = np.random.default_rng(seed)

    def known(mean: float) -> PauseEvidence:
        finished = float(np.clip(draw.normal(mean, 0.1), 0.01, 0.99))
        return PauseEvidence(finished, speech_s=float(draw.uniform(1.0, 4.0)), longest_pause_s=pause_s)

    return [
        *(ObservedPause(None, known(sound), 0.05) for _ in range(ends)),
        *(ObservedPause(int(draw.integers(8, 40)), known(0.4)) for _ in range(inside)),
    ]


def _sets() -> dict[str, list[ObservedPause]]:
    return {
        REQUESTS: _pauses(0.95, 0.0, ends=40, inside=4, seed=1),
        QUESTIONS: _pauses(0.95, 0.1, ends=30, inside=6, seed=5),
        TALK: _pauses(0.8, 0.5, ends=30, inside=40, seed=2),
        MADE_UP: _pauses(0.7, 0.4, ends=20, inside=20, seed=3),
        READ: _pauses(0.9, 0.3, ends=20, inside=20, seed=4),
    }


def test_what_tells_ends_from_pauses_has_weight() -> None:
    """Sounding finished speaks for an end, and having paused against it. A set that is there twice weighs the same."""
    sets = _sets()
    _, finished, _, pause = direction(sets)
    assert finished > 0 > pause
    twice = direction({**sets, TALK: sets[TALK] * 2})
    assert np.allclose(twice, direction(sets), rtol=0.05, atol=0.05)


def test_the_line_answers_requests_soon_and_waits_for_the_others() -> None:
    """Requests are answered within their goal, and who talks freely is talked over no more than a mistake may cost."""
    sets = _sets()
    line = gate_line(sets)
    soon = answered(sets[REQUESTS], lambda known: gate_s(known, line))
    assert 1000 * np.median(soon.known_after_s) <= KNOWN_P50_MS
    talk = answered(sets[TALK], lambda known: gate_s(known, line))
    assert len(talk.words_heard or ()) <= talk.inside * TALKED_OVER_SHARE
    assert all(words <= WORDS_HEARD for words in sorted(talk.words_heard or ())[:-1])
