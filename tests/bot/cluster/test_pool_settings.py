"""What makes a pool, and the sentence for what does not."""

from __future__ import annotations

import pytest

from bot.cluster.pool_settings import MOST_RECOGNISERS, PoolSettings
from bot.errors import SetupError


def test_one_recogniser_with_one_cpu_is_the_smallest_pool() -> None:
    """The defaults make a pool."""
    assert PoolSettings() == PoolSettings(least=1, most=1, cpus=1.0, gpus=0.0)


@pytest.mark.parametrize(("least", "most"), [(0, 1), (2, 1), (1, MOST_RECOGNISERS + 1), (-1, -1)])
def test_numbers_that_make_no_pool_are_told(least: int, most: int) -> None:
    """Whoever mistyped the numbers reads how they are given."""
    with pytest.raises(SetupError, match="MIN-MAX"):
        PoolSettings(least=least, most=most)


@pytest.mark.parametrize(("cpus", "gpus"), [(0.0, 0.0), (-1.0, 2.0), (1.0, -0.5)])
def test_a_recogniser_needs_something_to_run_on(cpus: float, gpus: float) -> None:
    """Neither a CPU nor a GPU, or less than none, is refused."""
    with pytest.raises(SetupError, match="--cpus or --gpus"):
        PoolSettings(cpus=cpus, gpus=gpus)
