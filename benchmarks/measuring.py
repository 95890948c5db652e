"""One run of a benchmark and its results so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from benchmarks.machine import busy_sentence, describe_machine
from benchmarks.report import BenchmarkReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.machine import Machine
    from benchmarks.progress import Progress
    from benchmarks.report import Json, Target

_UNFINISHED = "This run was not finished when this was written."


@dataclass(slots=True, kw_only=True)
class Measuring(ABC):
    """Collects the figures and remarks of one run. A benchmark adds its parts and its targets.

    `on_part` gets the unfinished report after each part, because a run takes minutes and may fail.
    """

    bench: ClassVar[str]

    progress: Progress
    on_part: Callable[[BenchmarkReport], None] | None = None
    machine: Machine = field(default_factory=describe_machine)
    ours: dict[str, Json] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @abstractmethod
    def targets(self) -> tuple[Target, ...]:
        """Return the targets with the values that were measured so far."""

    def remark(self, sentence: str) -> None:
        """Show a sentence now and add it to the report."""
        self.remarks.append(sentence)
        self.progress.say(sentence)

    def remark_if_busy(self) -> None:
        """Remark on the machine's load if it makes times longer."""
        if (busy := busy_sentence()) is not None:
            self.remark(busy)

    def part_measured(self, name: str, figures: dict[str, Json]) -> None:
        """Add the figures of a part to ours and pass on the unfinished report."""
        self.ours[name] = figures
        self.part_done()

    def part_done(self) -> None:
        """Pass on the unfinished report."""
        if self.on_part is not None:
            self.on_part(self.report(unfinished=True))

    def report(self, *, unfinished: bool = False) -> BenchmarkReport:
        """Return the report of the results so far."""
        more = (_UNFINISHED,) if unfinished else ()
        return BenchmarkReport(
            bench=self.bench,
            machine=self.machine,
            ours=dict(self.ours),
            targets=self.targets(),
            remarks=(*self.remarks, *more),
        )
