"""Runs one benchmark with its progress shown, and shows and writes its report. The options that benchmarks share."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from bot.cli.output import open_console, say
from bot.cli.progress_bar import ProgressBar
from bot.cli.signals import until_stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import BenchmarkReport

JsonFile = Annotated[
    Path | None, typer.Option("--json", help="Write the results as JSON to this file.", metavar="FILE", dir_okay=False)
]
_FILE_WIDTH = 150

Options = TypeVar("Options")
OptionsContra = TypeVar("OptionsContra", contravariant=True)


class BenchmarkFunction(Protocol[OptionsContra]):
    """`run` of a benchmark's package. `on_part` gets the unfinished report after each part."""

    def __call__(
        self, options: OptionsContra, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
    ) -> Coroutine[object, object, BenchmarkReport]: ...


def without_defaults(given: Mapping[str, object]) -> dict[str, Any]:
    """Return the options that somebody chose; those that are None keep the benchmark's own default."""
    return {name: value for name, value in given.items() if value is not None}


def refuse_unknown(option: str, given: Sequence[str] | None, known: Sequence[str]) -> None:
    """Refuse a value of an option that may be repeated. Raises `typer.BadParameter`."""
    if unknown := sorted(set(given or ()) - set(known)):
        raise typer.BadParameter(f"{option} {unknown[0]} is none of {', '.join(known)}.")


def measure(run: BenchmarkFunction[Options], options: Options, json_file: Path | None) -> None:
    """Run a benchmark with its progress shown, and show its report. The file has what was measured so far."""
    with ProgressBar() as progress:
        report = asyncio.run(until_stopped(run(options, progress, on_part=lambda part: _write(part, json_file))))
    _tell(report, json_file)


def _write(report: BenchmarkReport, json_file: Path | None) -> None:
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(report.as_json(), "utf-8")


def _tell(report: BenchmarkReport, json_file: Path | None) -> None:
    from rich.table import Table

    from benchmarks.document import cell, met

    table = Table(title=report.bench, title_justify="left", box=None, pad_edge=False)
    for heading in ("target", "goal", "measured", "", "of"):
        table.add_column(heading)
    for target in report.targets:
        table.add_row(target.name, target.goal, cell(target.value), met(asdict(target)).strip("*"), target.sample)
    # Do not wrap tables that are written to a file.
    out = open_console(width=None if sys.stdout.isatty() else _FILE_WIDTH)
    out.print(table)
    for remark in report.remarks:
        say(f"- {remark}")
    _write(report, json_file)
    if json_file is not None:
        say(f"All figures are in {json_file}.")
