"""Shows a rehearsal on the terminal: the conversation while it happens, then the report.

The output fits in 80 columns and can be piped.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from bot.events import CompactionFailed, CompactionLanded, ReplySpoken, SpeechDropped, UtteranceTranscribed
from rehearsal.report.report import RehearsalReport, count
from rehearsal.runner.ports import RunObserver
from rehearsal.script.scenario import Scenario

# These colours are readable on dark and on light backgrounds. The bot has a colour of its own.
_COLOURS = ("cyan", "yellow", "blue", "red", "bright_cyan", "bright_yellow", "bright_blue", "bright_red")
_BOT_COLOUR = "magenta"
# The column is as wide as the longest name, within these bounds.
_NAME_COLUMNS = (8, 16)


class TerminalReport(RunObserver):
    """Writes a run and its report to a terminal. Used as a context manager, it also shows who is speaking now."""

    def __init__(self, console: Console) -> None:
        """`console`: where to write. If it is not a terminal, there are no colours and no status line."""
        self._console = console
        # Spoken words may contain characters that an old terminal cannot show. That must not end the run.
        if isinstance(console.file, io.TextIOWrapper):
            console.file.reconfigure(errors="replace")
        self._colours: dict[str, str] = {}
        self._bot = "Roomtone"
        self._name_columns = _NAME_COLUMNS[1]
        self._line_count = self._lines_begun = 0
        self._status: Status | None = None

    def __enter__(self) -> Self:
        """Start the status line."""
        if self._console.is_terminal:
            self._status = self._console.status("Starting the local Discord and the bot ...")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the status line."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    # -- as it happens -------------------------------------------------------------------------------------

    def say(self, sentence: str) -> None:
        """Print a sentence about the preparations for the run. A picture of the run does not show it."""
        recording, self._console.record = self._console.record, False
        try:
            self._console.print(sentence, markup=False, soft_wrap=not self._console.is_terminal)
        finally:
            self._console.record = recording

    def opened(self, scenario: Scenario) -> None:
        """Print the title, who takes part, and the settings of the network."""
        names = ", ".join(person.name for person in scenario.people)
        facts = [f"{names} in {scenario.guild}, {scenario.channel}", count(len(scenario.says), "thing") + " to say"]
        if scenario.history:
            facts.append(count(len(scenario.history), "turn") + " remembered from before")
        if scenario.written:
            facts.append("in writing, on a virtual clock")
        else:
            network = {name: value for name, value in scenario.network.model_dump().items() if value}
            facts += [f"{value:.0%} {name}" for name, value in network.items()]
        self._bot = scenario.bot.name
        self._colours = {person.name: _COLOURS[index % len(_COLOURS)] for index, person in enumerate(scenario.people)}
        longest = max(len(name) for name in (self._bot, *self._colours))
        self._name_columns = min(max(longest, _NAME_COLUMNS[0]), _NAME_COLUMNS[1])
        self._line_count = len(scenario.says)
        self._console.print(Text(scenario.title, style="bold"))
        self._console.print(Text("; ".join(facts), style="dim"))
        self._console.print()

    def happened(self, at_s: float, text: str) -> None:
        """Print an event that is neither speech nor compaction."""
        self._line(at_s, "", Text(text, style="dim"))

    def spoken(self, at_s: float, speaker: str, reference: str) -> None:
        """Show on the status line who is speaking."""
        self._lines_begun += 1
        if self._status is not None:
            text = f"{self._lines_begun} of {self._line_count}: {speaker} is speaking ..."
            self._status.update(Text(text, style="dim"))

    def heard(self, at_s: float, speaker: str, heard: UtteranceTranscribed | SpeechDropped, latency_ms: float) -> None:
        """Print what the bot understood, or why it dropped it."""
        if isinstance(heard, SpeechDropped):
            self._line(at_s, speaker, Text(f"(dropped: {_plain(heard.reason)})", style="dim"), latency_ms)
        else:
            self._line(at_s, speaker, Text(heard.text), latency_ms)

    def replied(self, at_s: float, reply: ReplySpoken, latency_ms: float | None) -> None:
        """Print what the bot said."""
        text = f"{reply.text} (interrupted)" if reply.interrupted else reply.text
        self._line(at_s, self._bot, Text(text), latency_ms)

    def compacted(self, at_s: float, result: CompactionLanded | CompactionFailed) -> None:
        """Print a compaction: the cursor before and after, and the size of the summary."""
        if isinstance(result, CompactionLanded):
            text = f"compaction: cursor {result.old_cursor} -> {result.new_cursor}"
            text += f", summary of {len(result.summary)} characters"
            self._line(at_s, "", Text(text, style="green"), result.latency_ms)
        else:
            self._line(at_s, "", Text(f"compaction failed: {result.reason}", style="yellow"))

    def troubled(self, at_s: float, text: str) -> None:
        """Print a problem."""
        self._line(at_s, "", Text(text, style="bold red"))

    def _line(self, at_s: float, name: str, text: Text, latency_ms: float | None = None) -> None:
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(width=6, justify="right", no_wrap=True)
        if name:
            grid.add_column(width=self._name_columns, no_wrap=True, overflow="crop")
        grid.add_column(ratio=1)
        grid.add_column(width=8, justify="right", no_wrap=True)
        late = Text(_milliseconds(latency_ms), style="dim")
        cells = [Text(_clock(at_s), style="dim")]
        if name:
            cells.append(self._named(name))
        grid.add_row(*cells, text, late)
        self._console.print(grid)

    def _named(self, name: str) -> Text:
        return Text(name, style=_BOT_COLOUR if name == self._bot else self._colours.get(name, ""))

    # -- the report ----------------------------------------------------------------------------------------

    def show(self, report: RehearsalReport) -> None:
        """Print what the conversation does not show: figures, what was not heard, the summary, and the expectations.
        The verdict is the last thing on the screen. The JSON report has each line and each answer with its figures.
        """
        self._console.print()
        # A written scenario has no sound.
        if report.clock_s is None:
            stages = (
                ("text", report.latency.end_to_text_ms),
                ("the first sound that others hear", report.latency.end_to_first_audio_ms),
                ("the model's first token, part of it", report.latency.model_first_token_ms),
            )
            measured = [f"{name} {_milliseconds(each.p50)}" for name, each in stages if each.count]
            self._fact("From the end of the speech, P50", measured)
            self._fact("Packets", [f"{number} {_plain(name)}" for name, number in report.packets.items() if number])
        unheard = [f"{row.speaker}: {row.reference}" for row in report.utterances if not row.heard_as]
        self._fact("Not heard", unheard)
        self._fact("Dropped by the bot", [f"{number} {_plain(reason)}" for reason, number in report.dropped.items()])
        if report.summary:
            self._fact("Summary", [report.summary])
        self._expectations(report)

    def _fact(self, name: str, values: Sequence[str]) -> None:
        if values:
            self._console.print(Text.assemble((name, "italic"), f": {', '.join(values)}"))

    def _expectations(self, report: RehearsalReport) -> None:
        table = Table(title="Expectations", title_justify="left", expand=True, box=None, show_header=False)
        table.add_column(width=7, no_wrap=True)
        table.add_column(max_width=30, overflow="fold")
        table.add_column(ratio=1)
        for one in report.expectations:
            mark = Text("met", style="green") if one.passed else Text("NOT MET", style="bold red")
            table.add_row(mark, Text(one.name), Text(one.detail, style="dim" if one.passed else ""))
        self._console.print(table)
        self._console.print()
        met = sum(one.passed for one in report.expectations)
        verdict = Text("PASSED" if report.passed else "FAILED", style="bold green" if report.passed else "bold red")
        wer = "" if report.wer is None else f", word error rate {report.wer:.1%}"
        verdict.append(f" {met} of {len(report.expectations)} expectations met{wer}", style="not bold default")
        self._console.print(verdict)
        if not report.passed and report.clock_s is None and (busy := busy_sentence(report.machine)):
            self._console.print(Text(busy))


def busy_sentence(machine: Mapping[str, str]) -> str:
    """Return what a busy machine may have to do with a failure, or an empty text if it was not busy. `machine`: the
    facts of the report.
    """
    load, cores = float(machine.get("load", 0)), int(machine.get("cores", 1))
    if load <= cores:
        return ""
    return (
        f"The machine was busy: {load:.1f} threads wanted its {count(cores, 'core')} at once. Then sound comes late "
        "and words are misheard, so play it again while little else runs."
    )


def _plain(reason: str) -> str:
    """Return a name of the report in words."""
    return reason.replace("_", " ")


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} ms"


def _clock(seconds: float) -> str:
    whole = max(0, int(seconds))
    return f"{whole // 60}:{whole % 60:02}"
