"""What commands print, and what they ask: sentences, tables, JSON, a bar of progress, a link, and a yes."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import sys
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Self, TextIO

import typer
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from bot.errors import SetupError
from bot.terminal_text import OBEYED, escaped

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from pathlib import Path
    from types import TracebackType


# The continuation of a folded line starts here, or further right if the line itself does.
_INDENT = 4
# A pipe whose reader has ended, and a terminal that was closed.
_UNREAD = (errno.EPIPE, errno.EIO)
# A terminal that is narrower than this is taken to be so wide: nothing could be folded sensibly.
_NARROWEST = 40


def terminal_columns(stream: TextIO) -> int | None:
    """Return how wide lines on this stream may be, or None if it is no terminal and COLUMNS is not set."""
    is_told = os.environ.get("COLUMNS", "").isdecimal()
    return max(Console(file=stream).width, _NARROWEST) if is_told or stream.isatty() else None


def say(text: str, *, err: bool = False) -> None:
    """Print sentences, folded at the width of the terminal, without what a terminal would obey. `err`: on stderr. Where
    nobody reads any more, the rest is lost, and the work goes on.
    """
    stream = sys.stderr if err else sys.stdout
    columns = terminal_columns(stream)
    try:
        for line in OBEYED.sub("", text).split("\n"):
            stream.write((fold(line, columns) if columns is not None else line.rstrip()) + "\n")
        stream.flush()
    except OSError as error:
        if error.errno not in _UNREAD:
            raise
        _discard(stream)


def print_json(value: object) -> None:
    """Print a value as JSON. What a terminal would obey stands escaped in it, so the value stays the same."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print(escaped(text))  # noqa: T201 - a program reads it from stdout


def _discard(stream: TextIO) -> None:
    """Let what is still in the stream's buffer, and what is written later, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def fold(line: str, columns: int) -> str:
    """Return a line folded between words. Words that are too long, such as paths, are not broken."""
    indent = len(line) - len(line.lstrip())
    return textwrap.fill(
        line,
        columns,
        subsequent_indent=" " * max(indent, _INDENT if indent else 0),
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    ).rstrip()


def open_console(
    *, stderr: bool = False, file: TextIO | None = None, width: int | None = None, record: bool = False
) -> Console:
    """Return a console that prints without trailing blanks and without what a terminal would obey. `record`: for a
    picture of what was printed.
    """
    console = Console(highlight=False, stderr=stderr, file=file, width=width, record=record)
    console.push_render_hook(_WithoutTrailingBlanks())
    return console


def svg_picture(console: Console, *, title: str) -> str:
    """Return what a recording console has printed, as an SVG picture that asks no server for its fonts."""
    svg = console.export_svg(title=title, clear=False)
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


class _WithoutTrailingBlanks(RenderHook):
    """Leaves out the blanks with which rich fills tables up to their width, and what a terminal would obey."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Trimmed(each) for each in renderables]


class _Trimmed:
    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        blanks: list[Segment] = []
        for segment in console.render(self._inner, options):
            if segment.control:
                yield segment
                continue
            # The styles are no part of the text.
            for part in re.split(r"(\n)", OBEYED.sub("", segment.text)):
                if part == "\n":
                    blanks.clear()
                    yield Segment("\n")
                    continue
                words = part.rstrip(" ")
                if words:
                    yield from blanks
                    blanks.clear()
                    yield Segment(words, segment.style)
                if len(words) < len(part):
                    blanks.append(Segment(part[len(words) :], segment.style))
        # The line goes on.
        yield from blanks


def count(number: int, noun: str) -> str:
    """Return a number with its noun, as in `1 turn` and `1,200 turns`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def fail_if_folds_failed(reasons: Sequence[str]) -> None:
    """End the command with exit status 1 if there are `reasons` why compactions failed, and tell each once."""
    if reasons:
        told = [f"{count(number, 'compaction')} failed: {reason}" for reason, number in Counter(reasons).items()]
        say("\n".join(told), err=True)
        raise typer.Exit(1)


def plain_table(*headings: str, right: Container[str] = (), title: str | None = None) -> Table:
    """Return a table without lines, in which nothing is cut off. `right`: the headings over numbers."""
    columns = (Column(each, justify="right" if each in right else "left", overflow="fold") for each in headings)
    return Table(*columns, title=title, title_justify="left", box=None, pad_edge=False)


def print_indented(out: Console, text: str, *, by: int, style: str = "", mark: str = "") -> None:
    """Print text of any length, folded and indented by `by` columns. `mark`: what stands before its first line."""
    grid = Table.grid()
    grid.add_column(width=by, no_wrap=True)
    grid.add_column()
    grid.add_row(mark, Text(text, style=style))
    out.print(grid)


def confirm(question: str, *, yes: bool) -> None:
    """Ask whether to go on, and return if so. `yes`: --yes was given, so it is not asked.

    Raises `typer.Abort` if somebody says no or presses Ctrl-C, `SetupError` where nobody can answer.
    """
    if yes:
        return
    try:
        agreed = typer.confirm(question)
    except typer.Abort:
        # A line break after the question.
        say("")
        if not sys.stdin.isatty():
            raise SetupError(
                "Nobody has answered, so nothing was changed. Add --yes where no terminal is, as in a timer or script."
            ) from None
        raise
    if not agreed:
        say("Nothing was changed.")
        raise typer.Abort


def dashboard_line(link: str, data_dir: Path) -> str:
    """Return what to print about the dashboard: its link if stdout is a terminal, else the file that has it."""
    if sys.stdout.isatty():
        return f"Dashboard: {link}"
    from bot.wiring.pages import LINK_FILE

    file = (data_dir / LINK_FILE).absolute()
    return (
        f"Dashboard: the login link is in {file}, which only the bot's user can read. To see it: "
        f"cat {shlex.quote(str(file))}"
    )


class ProgressBar:
    """Shows the present step (`benchmarks.measuring.Progress`) while its block lasts."""

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
