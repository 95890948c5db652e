"""What a rule does to observed pauses."""

from __future__ import annotations

import pytest

from benchmarks.endpoint.bench import JUDGED, SPEECH, endpoint_targets, figures
from benchmarks.endpoint.curve import (
    SCALES,
    curve,
    former_rule,
    outcome,
    plain_silence_cuts,
    policy_rule,
    silence_rule,
    without_text,
)
from benchmarks.endpoint.observed_pauses import ObservedPause
from voice.listening.end_policy import END_POLICY
from voice.listening.endpointing import WINDOW_S, window_count


def pause(windows: int | None, finished: float = 0.5, sentence_end: float | None = 0.9) -> ObservedPause:
    """Return a pause of one person."""
    return ObservedPause("one.ogg", "ada", windows, finished, sentence_end)


PAUSES = [
    pause(10, 0.2, 0.5),
    pause(20, 0.2, 0.5),
    pause(30, 0.97, 0.97),
    pause(None, 0.99, 0.99),
    pause(None, 0.1, 0.5),
]


@pytest.mark.parametrize(("seconds", "cut"), [(0.3, 3), (0.5, 2), (0.8, 1), (1.0, 0)])
def test_plain_silence_cuts_the_pauses_that_are_longer(seconds: float, cut: int) -> None:
    """A pause is cut if it has as many silent windows as the rule asks for. An end is known after them."""
    done = outcome(PAUSES, silence_rule(seconds))
    assert (done.inside, done.cut) == (3, cut)
    assert all(seconds <= known <= seconds + WINDOW_S + 0.02 for known in done.known_after_s)


def test_the_former_rule_looks_at_the_turn_model_only() -> None:
    """Who sounds finished waits half as long as who does not, whatever the text says."""
    rule = former_rule()
    assert [rule(each) for each in PAUSES] == [32, 32, 16, 16, 32]
    assert outcome(PAUSES, rule).cut == 1


def test_the_policy_uses_both_and_the_curve_stretches_it() -> None:
    """The policy waits longest for the least sure; a larger scale never cuts more and never is sooner."""
    rule = policy_rule()
    assert rule(PAUSES[0]) == window_count(END_POLICY.longest_s)
    assert rule(PAUSES[3]) == window_count(END_POLICY.shortest_s)
    assert without_text(PAUSES)[0].sentence_end is None
    points = curve(PAUSES, policy_rule)
    assert [point["scale"] for point in points if isinstance(point, dict)] == list(SCALES)
    outcomes = [outcome(PAUSES, policy_rule(scale)) for scale in SCALES]
    assert sorted((done.cut for done in outcomes), reverse=True) == [done.cut for done in outcomes]
    assert sorted(done.mean_s for done in outcomes) == [done.mean_s for done in outcomes]


def test_plain_silence_at_the_same_mean_delay() -> None:
    """The share is between those of the two silences that are nearest to the delay."""
    at = outcome(PAUSES, silence_rule(0.5)).mean_s
    assert plain_silence_cuts(PAUSES, at) == pytest.approx(2 / 3, abs=0.001)
    assert plain_silence_cuts(PAUSES, 9.0) is None


def test_the_targets_are_those_of_real_speech_and_of_what_was_kept_apart() -> None:
    """Two goals for each of the two sets; a set that was not observed is not measured."""
    reported = endpoint_targets({SPEECH: figures(PAUSES, recordings=2, passes=1)})
    assert len(reported) == 2 * len(JUDGED)
    assert [target.met is None for target in reported] == [False, True, False, True]
    assert reported[0].sample.endswith("of 3 pauses")


def test_an_end_is_known_with_the_frame_that_completes_its_last_window() -> None:
    """Windows of 32 ms end within frames of 20 ms; a voice that ended before its last window adds to the delay."""
    end = ObservedPause("one.ogg", "ada", None, 0.9, 0.9, voice_end_s=0.05)
    assert end.known_after_s(10) == pytest.approx(0.05 + 0.32)
    assert end.known_after_s(16) == pytest.approx(0.05 + 0.52)
