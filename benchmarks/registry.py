"""Which benchmarks there are.

An entry is light: what a benchmark needs is imported when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from benchmarks.errors import BenchmarkUnknownError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.progress import Progress
    from benchmarks.report import Report


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark: `module` has `async def run(options, progress) -> Report` and the class `Options`, whose
    defaults are a whole run."""

    name: str
    title: str
    duration: str
    module: str

    def default_run(self, progress: Progress) -> Awaitable[Report]:
        """Run with the default options."""
        module = import_module(self.module)
        run: Callable[[object, Progress], Awaitable[Report]] = module.run
        return run(module.Options(), progress)


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        name="memory",
        title="What is left of an evening after 5, 20 and 100 folds, and what remembering costs a reply",
        duration="5 minutes without a language model, half an hour more with a small one",
        module="benchmarks.memory.bench",
    ),
    Benchmark(
        name="reply",
        title="How long an answer takes, whether it was meant to come, how it stops, and how it grows with rooms",
        duration="10 minutes, most of which people speak",
        module="benchmarks.reply.bench",
    ),
    Benchmark(
        name="screen",
        title="What is noticed of a shared screen, what is read of it, how fast, and what an hour costs",
        duration="5 minutes, half of which somebody speaks",
        module="benchmarks.screen.bench",
    ),
)


def find(name: str) -> Benchmark:
    """Return the benchmark of that name. Raises `BenchmarkUnknownError`."""
    for entry in BENCHMARKS:
        if entry.name == name:
            return entry
    near = get_close_matches(name, [entry.name for entry in BENCHMARKS], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise BenchmarkUnknownError(f"There is no benchmark called {name!r}.{hint} `roomtone bench` lists them all.")
