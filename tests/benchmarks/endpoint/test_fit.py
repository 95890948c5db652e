"""Choosing the policy's coefficients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.endpoint.fit import cost_s, reaches_goals, silences, weights
from benchmarks.endpoint.observed_pauses import ObservedPause
from voice.listening.end_policy import EndPolicy


def _pauses() -> list[ObservedPause]:
    """Return pauses of which the text tells more than the intonation."""
    draw = np.random.default_rng(5)
    pauses = []
    for number in range(200):
        is_end = number % 2 == 0
        finished = float(np.clip(draw.normal(0.6 if is_end else 0.5, 0.2), 0.01, 0.99))
        sentence_end = float(np.clip(draw.normal(0.95 if is_end else 0.6, 0.1), 0.01, 0.99))
        windows = None if is_end else int(draw.integers(8, 40))
        pauses.append(ObservedPause("one.ogg", "ada", windows, finished, sentence_end))
    return pauses


def test_what_tells_more_weighs_more() -> None:
    """Both weights speak for an end, and that of the more telling probability is larger."""
    finished, sentence = weights([_pauses()])
    assert 0 < finished < sentence


def test_sets_count_the_same_whatever_their_size() -> None:
    """A set that is there twice does not count more than the other."""
    pauses = _pauses()
    one, other = pauses[:100], pauses[100:]
    equal, doubled = weights([one, other]), weights([one, [*other, *other]])
    # The regression is drawn to small weights a little less by more pauses.
    assert doubled == pytest.approx(equal, rel=0.15)


def test_the_policy_that_is_found_costs_less_than_its_neighbours() -> None:
    """The search waits less for the sure than for the unsure, and beats both fixed silences."""
    sets = [_pauses()]
    finished_weight, sentence_weight = weights(sets)
    found = silences(sets, EndPolicy(finished_weight=finished_weight, sentence_weight=sentence_weight))
    assert found.shortest_s < found.longest_s
    for fixed_s in (found.shortest_s, found.longest_s):
        assert cost_s(sets[0], found) <= cost_s(sets[0], replace(found, shortest_s=fixed_s, longest_s=fixed_s))


def test_goals_are_few_cuts_and_an_early_median() -> None:
    """Whoever ends all speech at once cuts too much, and whoever always waits knows the median end too late."""
    ends = [ObservedPause("one.ogg", "ada", None, 0.99, 0.99)] * 5
    inside = [ObservedPause("one.ogg", "ada", 20, 0.1, 0.1)] * 5
    policy = EndPolicy()
    assert reaches_goals([*ends, *inside], policy)
    assert not reaches_goals([*ends, *inside], replace(policy, longest_s=policy.shortest_s))
    assert not reaches_goals([*ends, *inside], replace(policy, shortest_s=policy.longest_s))
