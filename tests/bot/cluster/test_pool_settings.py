"""What makes a pool, and the sentence for what does not."""

from __future__ import annotations

import pytest

from bot.cluster.pool_settings import GPU_BATCH, MOST_BATCH, MOST_RECOGNISERS, PoolSettings
from bot.errors import SetupError


def test_one_recogniser_with_one_cpu_is_the_smallest_pool() -> None:
    """The defaults make a pool."""
    assert PoolSettings() == PoolSettings(least=1, most=1, cpus=1.0, gpus=0.0)


@pytest.mark.parametrize(("least", "most"), [(0, 1), (2, 1), (1, MOST_RECOGNISERS + 1), (-1, -1)])
def test_numbers_that_make_no_pool_are_told(least: int, most: int) -> None:
    """Whoever mistyped the numbers reads how they are given."""
    with pytest.raises(SetupError, match="MIN-MAX"):
        PoolSettings(least=least, most=most)


@pytest.mark.parametrize(
    ("gpus", "batch", "size", "device"),
    [(0.0, 0, 1, "cpu"), (0.25, 0, GPU_BATCH, "auto"), (0.25, 3, 3, "auto"), (0.0, 4, 4, "cpu")],
)
def test_a_gpu_takes_a_few_utterances_at_once(gpus: float, batch: int, size: int, device: str) -> None:
    """A recogniser that reserved no GPU uses none."""
    pool = PoolSettings(gpus=gpus, batch=batch)
    assert (pool.batch_size, pool.device) == (size, device)


@pytest.mark.parametrize("batch", [-1, MOST_BATCH + 1])
def test_too_large_a_batch_is_told(batch: int) -> None:
    """It would not fit into a GPU."""
    with pytest.raises(SetupError, match="--batch"):
        PoolSettings(batch=batch)


@pytest.mark.parametrize(("cpus", "gpus"), [(0.0, 0.0), (-1.0, 2.0), (1.0, -0.5)])
def test_a_recogniser_needs_something_to_run_on(cpus: float, gpus: float) -> None:
    """Neither a CPU nor a GPU, or less than none, is refused."""
    with pytest.raises(SetupError, match="--cpus or --gpus"):
        PoolSettings(cpus=cpus, gpus=gpus)


@pytest.mark.parametrize(
    ("cpus", "gpus", "told"),
    [(1.0, 0.0, "1 CPU and 0 GPUs"), (2.0, 1.0, "2 CPUs and 1 GPU"), (0.5, 0.33, "0.5 CPUs and 0.33 GPUs")],
)
def test_what_a_recogniser_reserves_reads_as_a_phrase(cpus: float, gpus: float, told: str) -> None:
    """The operator reads it after `roomtone cluster up` and `scale`."""
    assert PoolSettings(cpus=cpus, gpus=gpus).reserved == told
