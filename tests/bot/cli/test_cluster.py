"""`roomtone cluster`: what its words mean, and what it says without a cluster."""

from __future__ import annotations

import pytest

from bot.cli.cluster import pool_settings
from bot.cluster.pool_settings import PoolSettings
from bot.errors import SetupError


@pytest.mark.parametrize(
    ("words", "least", "most"), [("1", 1, 1), ("3", 3, 3), ("1-4", 1, 4), (" 2-2 ", 2, 2), ("16-256", 16, 256)]
)
def test_a_number_or_a_range_is_how_many_there_are(words: str, least: int, most: int) -> None:
    """One number is both the least and the most."""
    assert pool_settings(words, cpus=1, gpus=0) == PoolSettings(least=least, most=most, cpus=1, gpus=0)


@pytest.mark.parametrize("words", ["", "many", "1-", "-4", "1-2-3", "1.5", "4-1", "0", "0-4", "1-999"])
def test_anything_else_is_refused_with_an_example(words: str) -> None:
    """Whoever mistyped the number reads how it is written."""
    with pytest.raises(SetupError, match="MIN-MAX, for example 1-4"):
        pool_settings(words, cpus=1, gpus=0)
