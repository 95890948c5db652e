"""What Ray's autoscaler asks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bot.cluster.deployment import scale


@pytest.mark.parametrize(
    ("reported", "wanted"),
    [
        ({"oldest_wait_s": {"a": 0.0, "b": 1.5}, "busy_share": {"a": 0.9, "b": 1.0}}, 3),
        ({"oldest_wait_s": {"a": 0.0, "b": 0.0}, "busy_share": {"a": 0.1, "b": 0.1}}, 1),
        ({}, 2),
        (None, 2),
    ],
)
def test_the_autoscaler_follows_the_policy(reported: dict[str, dict[str, float]] | None, wanted: int) -> None:
    """What the recognisers report decides; without a report nothing changes."""
    context = SimpleNamespace(
        aggregated_metrics=reported,
        target_num_replicas=2,
        capacity_adjusted_min_replicas=1,
        capacity_adjusted_max_replicas=4,
    )
    assert scale(context) == (wanted, {})
