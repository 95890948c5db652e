"""Choosing the policy's coefficients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.endpoint.fit import cost_s, curve, reading_weights, within_bounds
from benchmarks.listen.observed_pauses import Asked, ObservedPause
from voice.asr.port import TextEnd
from voice.listening.end_policy import EndPolicy, PauseEvidence


def _pauses() -> list[ObservedPause]:
    """Return pauses of which the text tells more than the intonation."""
    draw = np.random.default_rng(5)
    pauses = []
    for number in range(120):
        is_end = number % 2 == 0
        finished, sentence_end, ends = (
            float(np.clip(draw.normal(mean if is_end else 0.5, 0.15), 0.01, 0.99)) for mean in (0.6, 0.6, 0.9)
        )
        evidence = PauseEvidence(finished, sentence_end, TextEnd(ends, 1 - ends))
        pauses.append(ObservedPause(None if is_end else int(draw.integers(8, 40)), Asked(4, evidence)))
    return pauses


def test_what_tells_more_weighs_more() -> None:
    """The weights speak for an end, and that of the more telling probability is larger."""
    weights = reading_weights([_pauses()])
    assert 0 < weights.finished < weights.ends


def test_sets_count_the_same_whatever_their_size() -> None:
    """A set that is there twice does not count more than the other."""
    pauses = _pauses()
    one, other = pauses[:60], pauses[60:]
    equal, doubled = reading_weights([one, other]), reading_weights([one, [*other, *other]])
    # The regression is drawn to small weights a little less by more pauses.
    assert doubled.ends == pytest.approx(equal.ends, rel=0.2)


def test_the_policy_that_is_found_costs_less_than_its_neighbours() -> None:
    """The search waits less for the sure than for the unsure, and beats both fixed silences."""
    sets = [_pauses()[:40]]
    found = curve(sets, reading_weights(sets))
    assert found.shortest_s < found.longest_s
    for fixed_s in (found.shortest_s, found.longest_s):
        fixed = replace(found, shortest_s=fixed_s, longest_s=fixed_s)
        assert cost_s(sets[0], found) <= cost_s(sets[0], fixed)


def test_bounds_are_few_cuts_and_an_early_median() -> None:
    """Whoever ends all speech at once cuts too much, and whoever always waits knows the median end too late."""
    ends = [ObservedPause(None, Asked(4, PauseEvidence(0.99, 0.99)))] * 5
    inside = [ObservedPause(20, Asked(4, PauseEvidence(0.1, 0.1)))] * 5
    policy = EndPolicy()
    assert within_bounds([*ends, *inside], policy)
    assert not within_bounds([*ends, *inside], replace(policy, longest_s=policy.shortest_s))
    assert not within_bounds([*ends, *inside], replace(policy, shortest_s=policy.longest_s))
