"""The list of benchmarks."""

from __future__ import annotations

from importlib import import_module
from inspect import iscoroutinefunction

import pytest

from benchmarks.registry import BENCHMARKS, Benchmark


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: str(benchmark.name))
def test_every_benchmark_can_run(benchmark: Benchmark) -> None:
    """Each benchmark's module has the coroutine function `run` that the registry promises."""
    assert iscoroutinefunction(import_module(benchmark.module).run)
