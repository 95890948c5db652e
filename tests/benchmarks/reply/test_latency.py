"""The latency stages follow each other, and work that was done ahead of time counts as zero."""

from __future__ import annotations

import pytest

from benchmarks.figures import spread
from benchmarks.reply.latency import STAGES, LatencySample, stages_between


@pytest.mark.parametrize(
    ("moments", "endpointing_ms", "recogniser_ms", "whole_ms"),
    [
        ((10.6, 10.62, 10.65, 10.7, 10.75, 10.8), 600, 20, 800),
        # What was over before took no time.
        ((10.6, 10.5, 10.4, 10.65, 10.7, 10.75), 600, 0, 750),
    ],
)
def test_stages_are_the_whole(
    moments: tuple[float, ...], endpointing_ms: float, recogniser_ms: float, whole_ms: float
) -> None:
    """The stages add up to the time from the end of speech to the first sound."""
    stages = stages_between(10.0, moments)
    assert list(stages) == list(STAGES)
    assert (stages["endpointing"], stages["recogniser"]) == pytest.approx((endpointing_ms, recogniser_ms))
    assert sum(stages.values()) == pytest.approx(whole_ms)


def test_times_are_told_as_median_p95_and_worst() -> None:
    """Times are summarised as median, mean, p95 and maximum; an empty list gives none."""
    assert spread([1.0, 2.0, 3.0]) == {"count": 3, "p50": 2.0, "mean": 2.0, "p95": 3.0, "max": 3.0}
    assert spread([]) == {"count": 0}


def test_only_the_part_of_the_models_delay_that_somebody_waited_for_is_left_out() -> None:
    """A model that was asked ahead has answered in part, or wholly, before anybody waits for it."""
    # The model's server takes 500 ms, of which 120 ms are left when the text is certain.
    stages = stages_between(10.0, (10.6, 10.62, 10.25, 10.74, 10.75, 10.8))
    sample = LatencySample(800.0, 620.0, stages)
    assert sample.besides_the_server_ms(500.0) == pytest.approx(680)
    assert sample.besides_the_server_ms(100.0) == pytest.approx(700)
    assert sample.besides_the_server_ms(0.0) == 800.0
