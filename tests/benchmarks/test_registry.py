"""The list of benchmarks."""

from __future__ import annotations

from importlib import import_module
from inspect import iscoroutinefunction

import pytest

from benchmarks.registry import BENCHMARKS, Benchmark


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: str(benchmark.name))
def test_every_benchmark_can_run(benchmark: Benchmark) -> None:
    """Its module has the `run` that the registry promises."""
    assert iscoroutinefunction(import_module(benchmark.module).run)
