"""Which benchmarks there are."""

from __future__ import annotations

from importlib import import_module

import pytest

from benchmarks.errors import BenchmarkUnknownError
from benchmarks.registry import BENCHMARKS, find


@pytest.mark.parametrize("entry", BENCHMARKS, ids=lambda entry: str(entry.name))
def test_every_entry_can_run(entry: object) -> None:
    """Its module has what the registry promises."""
    module = import_module(getattr(entry, "module"))  # noqa: B009 - the fixture's type is not the entry's
    assert callable(module.run)
    module.Options()


def test_benchmark_is_found_by_name() -> None:
    """A name leads to its entry."""
    assert find("memory").name == "memory"


def test_unknown_name_is_told_with_the_nearest() -> None:
    """Whoever mistypes learns what was meant."""
    with pytest.raises(BenchmarkUnknownError, match="Did you mean 'memory'"):
        find("memroy")
