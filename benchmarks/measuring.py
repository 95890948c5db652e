"""One run of a benchmark: how it reports its progress, and its results so far."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from benchmarks.report import BenchmarkReport, Json, Machine, Target, busy_sentence, describe_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence


_UNFINISHED = "This run was not finished when this was written."


class Progress(Protocol):
    """Receives a benchmark's progress. The command line shows it; tests collect it."""

    def step(self, name: str, *, total: int) -> None:
        """Start a step of `total` equal parts. The previous step is finished."""

    def advance(self, count: int = 1) -> None:
        """Report that `count` more parts of the step are done."""

    def say(self, line: str) -> None:
        """Show one plain sentence."""


@dataclass(slots=True)
class Measuring:
    """Collects the figures and remarks of one run. Made by `measuring`.

    `targets`: judges the figures. `only`: the parts to measure; empty means all. `on_part` gets the unfinished report
    after each part, because a run takes minutes and may fail.
    """

    bench: str
    targets: Callable[[Mapping[str, Json]], Sequence[Target]]
    progress: Progress
    on_part: Callable[[BenchmarkReport], None]
    only: tuple[str, ...]
    machine: Machine = field(default_factory=describe_machine)
    ours: dict[str, Json] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def wants(self, part: str) -> bool:
        """Return whether this part has to be measured."""
        return not self.only or part in self.only

    def remark(self, sentence: str) -> None:
        """Show a sentence now and add it to the report."""
        self.remarks.append(sentence)
        self.progress.say(sentence)

    def part_measured(self, name: str, figures: Mapping[str, Json]) -> None:
        """Add the figures of a part to ours and pass on the unfinished report."""
        self.ours[name] = dict(figures)
        self.on_part(self.report(_UNFINISHED))

    def report(self, *more: str) -> BenchmarkReport:
        """Return the report of the results so far. `more`: remarks of this report alone."""
        return BenchmarkReport(
            self.bench, self.machine, dict(self.ours), tuple(self.targets(self.ours)), (*self.remarks, *more)
        )


@contextmanager
def measuring(
    bench: str,
    targets: Callable[[Mapping[str, Json]], Sequence[Target]],
    progress: Progress,
    on_part: Callable[[BenchmarkReport], None],
    only: tuple[str, ...] = (),
) -> Iterator[Measuring]:
    """Yield a new run (`Measuring`). Nothing is logged meanwhile, and a busy machine is remarked upon."""
    run = Measuring(bench, targets, progress, on_part, only)
    if (busy := busy_sentence()) is not None:
        run.remark(busy)
    with logging_disabled():
        yield run


@contextmanager
def logging_disabled(kept: list[Mapping[str, Any]] | None = None) -> Iterator[None]:
    """Drop this process's log lines, or put them all into `kept`: writing thousands of them would be measured too. The
    end restores the logging.
    """

    def take(logger: object, name: str, event: MutableMapping[str, Any]) -> str:
        if kept is not None:
            kept.append({**event, "level": name})
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, take],
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL if kept is None else 0),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)
