"""The progress of a benchmark or a replay on stderr: a bar on a terminal, otherwise a line for each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from bot.cli.output import open_console

if TYPE_CHECKING:
    from types import TracebackType


class ProgressBar:
    """Shows the present step (`benchmarks.progress.Progress`) while its block lasts."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = open_console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._progress.stop()

    def step(self, name: str, *, total: int) -> None:
        self._progress.reset(self._task, total=total, description=name)
        if not self._console.is_terminal:
            self._console.print(name, markup=False)

    def advance(self, count: int = 1) -> None:
        self._progress.advance(self._task, count)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._console.print(line, markup=False)
