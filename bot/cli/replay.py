"""`roomtone replay`: plays a transcript through the real memory and shows what a model would be sent after it."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.explain import print_part
from bot.cli.output import ProgressBar, count, fail_if_folds_failed, open_console, print_indented, say
from bot.memory.replay import Replay, replay
from bot.memory.transcript import TranscriptLine, read_transcript
from compaction.events import CompactionEvent, RunFailed, RunLanded
from compaction.model import Mode
from compaction.settings import SummariserKind

if TYPE_CHECKING:
    from rich.console import Console

    from config.schema import Settings

_NAME_COLUMNS = 12


def command(
    transcript: Annotated[
        Path,
        typer.Argument(
            help='JSON lines: {"speaker", "text", "at"} or {"note", "at"}; "at" is epoch seconds, an ISO time, or '
            "seconds from the start.",
            metavar="TRANSCRIPT.jsonl",
        ),
    ],
    summariser: Annotated[
        SummariserKind,
        typer.Option(help="The summariser of old turns: extractive (no model), llm (the configured model) or auto."),
    ] = SummariserKind.EXTRACTIVE,
    mode: Annotated[
        Mode | None,
        typer.Option(help="How the session remembers turns that have left the window. Default: compaction.mode."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write the whole result as JSON to this file.", metavar="FILE.json")
    ] = None,
) -> None:
    """Play a transcript through the real memory. Show each compaction and the final payload.

    Nothing is stored: the session is in a temporary database. `--summariser llm` uses the configured model
    (llm.base_url, llm.api_key, llm.model). The exit status is 0 only if no compaction failed.
    """
    from bot.cli.environment import logging_to_file, require_folder, write_json
    from config.load import load

    settings = load()
    if report is not None:
        require_folder("--report", report)
    lines = read_transcript(transcript)
    out = open_console()
    with logging_to_file(settings):
        result = asyncio.run(_replay(lines, settings, summariser, mode or settings.compaction.mode, out))
    _show(result, out, wanted=mode or settings.compaction.mode)
    if report is not None:
        write_json(report, result.report(), example="--report report.json")
        say(f"The report is in {report}.")
    fail_if_folds_failed([each.error for each in result.failed])


async def _replay(
    lines: list[TranscriptLine], settings: Settings, kind: SummariserKind, mode: Mode, out: Console
) -> Replay:
    from datetime import UTC

    from bot.brain.system_prompt import SystemPrompt
    from bot.clock import SystemClock
    from bot.llm.factory import open_budget
    from bot.store.database import open_database
    from bot.store.turns import SqlTurnStore
    from bot.wiring.memory import open_summariser

    budget = await open_budget(settings.llm.model, settings.budget, settings.models)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-replay-"))
        database = await stack.enter_async_context(open_database(Path(folder) / "replay.db", synchronous="normal"))
        summariser = await stack.enter_async_context(
            open_summariser(settings.llm, kind, budget=settings.budget, models=settings.models)
        )
        progress = stack.enter_context(ProgressBar())
        progress.step("replaying", total=len(lines))
        return await replay(
            lines,
            store=SqlTurnStore(database, SystemClock()),
            summariser=summariser,
            mode=mode,
            system=[SystemPrompt(settings.brain.name, settings.brain.instructions).text()],
            max_input_tokens=budget.room(max_output_tokens=settings.llm.max_output_tokens),
            zone=UTC,
            options=budget.trim_options,
            enforced=settings.budget.enabled,
            searchable=settings.recall.enabled,
            own_names=settings.brain.names,
            on_event=lambda event: _print_fold(event, out),
            on_line=progress.advance,
        )


def _print_fold(event: CompactionEvent, out: Console) -> None:
    """Print a compaction as it happens. Skipped checks are only logged."""

    match event:
        case RunLanded():
            notes = f" {count(event.folded_note_count, 'note')}," if event.folded_note_count else ""
            moved = f"cursor {event.old_cursor:>5} -> {event.new_cursor:<5}"
            line = f"{moved}{notes} summary {event.summary_chars} characters, {event.latency_ms:.0f} ms"
            print_indented(out, line, by=_NAME_COLUMNS, mark="compaction")
        case RunFailed():
            line = f"cursor {event.cursor:>5} stays: {event.error} (attempt {event.attempt})"
            print_indented(out, line, by=_NAME_COLUMNS, style="yellow", mark="compaction")


def _show(result: Replay, out: Console, *, wanted: Mode) -> None:
    covered = result.covered
    notes = f", {count(result.notes, 'note')}" if result.notes else ""
    out.print(f"\n{count(result.turns, 'turn')}{notes}, cursor {result.cursor}", markup=False)
    if result.mode is not wanted:
        out.print(
            f"The mode {wanted.value} needs memory search, which recall.enabled turns off, so the mode was "
            f"{result.mode.value}.",
            markup=False,
            style="yellow",
        )
    if result.summary:
        out.print(f"\nSummary ({len(result.summary)} characters)\n{result.summary}", markup=False)
    out.print("\nWhat a model would be sent now:")
    for part in result.payload:
        print_part(part, out)
    tokens = sum(part.tokens for part in result.payload)
    out.print(f"\n{count(len(result.payload), 'message')}, {count(tokens, 'token')}", markup=False)
    for name, ranges in (
        ("summarised", covered.summarised),
        ("word for word", covered.verbatim),
        ("left out", covered.evicted),
        ("MISSING", covered.missing),
    ):
        if ranges:
            listed = ", ".join(f"{first}-{last}" for first, last in ranges)
            out.print(f"{name}: turns {listed}", markup=False, style="bold red" if name == "MISSING" else "")
