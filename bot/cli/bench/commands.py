"""`roomtone bench`: measures what the bot can do on this machine."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from bot.cli.environment import write_named_file
from bot.cli.output import ProgressBar, open_console, plain_table, say
from bot.cli.signals import until_stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from benchmarks.report import BenchmarkReport

    BenchmarkFunction: TypeAlias = Callable[..., Coroutine[object, object, BenchmarkReport]]

JsonFile = Annotated[
    Path | None, typer.Option("--json", help="Write the results as JSON to this file.", metavar="FILE", dir_okay=False)
]
_FILE_WIDTH = 150


def measure(run: BenchmarkFunction, options: object, json_file: Path | None) -> None:
    """Run a benchmark with its progress shown, and show its report. The file has what was measured so far.

    `run`: of the benchmark's package; its `on_part` gets the unfinished report after each part.
    """
    with ProgressBar() as progress:
        report = asyncio.run(until_stopped(run(options, progress, on_part=lambda part: _write(part, json_file))))
    _show(report, json_file)


def _write(report: BenchmarkReport, json_file: Path | None) -> None:
    if json_file is not None:
        write_named_file(json_file, report.as_json(), example="--json report.json")


def _show(report: BenchmarkReport, json_file: Path | None) -> None:
    from benchmarks.document import measured, met

    table = plain_table("target", "goal", "measured", "", "of", title=report.bench)
    for target in report.targets:
        fields = asdict(target)
        table.add_row(target.name, target.goal, measured(fields), met(fields).strip("*"), target.sample)
    # Do not wrap tables that are written to a file.
    out = open_console(width=None if sys.stdout.isatty() else _FILE_WIDTH)
    out.print(table)
    for remark in report.remarks:
        say(f"- {remark}")
    _write(report, json_file)
    if json_file is not None:
        say(f"All figures are in {json_file}.")


app = typer.Typer(
    help="Run benchmarks. Each can write its results as one JSON object.",
    invoke_without_command=True,
)

# What each benchmark can measure alone.
PARTS = {
    "memory": ("recorded", "names", "extractive", "search", "evidence", "quoting", "languages", "tiers", "speed"),
    "reply": ("latency", "speakers", "interruption", "two-parts"),
    "listen": ("deciding", "endpointing", "unasked"),
    "asr": ("questions", "voices", "alone", "opus"),
    "load": ("receive", "bot", "rooms", "leaks"),
}

SpeechDir = Annotated[
    Path | None,
    typer.Option(help="Use the real recordings of DIR/manifest.json.", metavar="DIR", file_okay=False),
]
Transcripts = Annotated[
    Path | None,
    typer.Option(
        help="Use these conversations: JSON lines, or files of LoCoMo, QMSum or CRD3.", metavar="DIR", file_okay=False
    ),
]
Only = Annotated[list[str] | None, typer.Option(help="Only this part. May be repeated.")]
Quick = Annotated[bool, typer.Option("--quick", help="A short run, to see that it works.")]


@app.callback()
def listing(context: typer.Context) -> None:
    """List the benchmarks when none is named."""
    if context.invoked_subcommand is not None:
        return
    from benchmarks.registry import BENCHMARKS

    table = plain_table("benchmark", "what it measures", "takes", "parts")
    for entry in BENCHMARKS:
        table.add_row(entry.name, entry.title, entry.duration, ", ".join(PARTS.get(entry.name, ())))
    open_console().print(table)
    say("\nRun one with `roomtone bench NAME [--json FILE]`; `roomtone bench NAME -h` shows its options.")


@app.command()
def memory(
    json_file: JsonFile = None,
    evenings: Annotated[int, typer.Option(min=1, max=100, help="Generated evenings for each template set.")] = 4,
    seed: Annotated[int, typer.Option(help="The seed of the first evening.")] = 1,
    no_embeddings: Annotated[bool, typer.Option("--no-embeddings", help="Search by full text only.")] = False,
    transcripts: Transcripts = None,
    search_turns: Annotated[int, typer.Option(min=100, help="Turns in the database that is searched.")] = 100_000,
    only: Only = None,
) -> None:
    """Measure what memory keeps and finds."""
    from benchmarks.memory.bench import MemoryBenchOptions, run

    options = MemoryBenchOptions(
        evenings=evenings,
        seed=seed,
        transcripts=transcripts,
        embeddings=not no_embeddings,
        search_turns=search_turns,
        only=_parts("memory", only),
    )
    measure(run, options, json_file)


@app.command()
def reply(
    json_file: JsonFile = None,
    speech: SpeechDir = None,
    questions: Annotated[
        bool, typer.Option("--questions", help="Ask all 60 short questions of `bench asr`, instead of recordings.")
    ] = False,
    recordings: Annotated[
        int | None,
        typer.Option(min=0, max=1000, help="Number of recordings to answer, one after the other; default 50, 0: all."),
    ] = None,
    interruptions: Annotated[int | None, typer.Option(min=1, max=1000, help="Number of answers to interrupt.")] = None,
    first_token_ms: Annotated[
        float | None, typer.Option(min=0, max=10_000, help="How long the model's server takes for its first token.")
    ] = None,
    only: Only = None,
    quick: Quick = False,
) -> None:
    """Measure how fast the bot answers and stops."""
    if speech is not None and questions:
        raise typer.BadParameter("--speech and --questions exclude each other.")
    from benchmarks.reply.bench import ReplyBenchOptions, run

    if questions and not quick and recordings is None:
        recordings = 0
    given: dict[str, Any] = {
        "speech": speech,
        "questions": questions,
        "recordings": recordings,
        "interruptions": interruptions,
        "first_token_ms": first_token_ms,
        "only": _parts("reply", only),
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    options = (ReplyBenchOptions.quick if quick else ReplyBenchOptions)(**chosen)
    measure(run, options, json_file)


@app.command()
def listen(
    json_file: JsonFile = None,
    speech: SpeechDir = None,
    recordings: Annotated[int, typer.Option(min=0, max=1000, help="Number of recordings; 0: all.")] = 0,
    transcripts: Transcripts = None,
    only: Only = None,
) -> None:
    """Measure ends of speech, who is meant, and remarks unasked."""
    from benchmarks.listen.bench import ListenBenchOptions, run

    options = ListenBenchOptions(
        speech=speech, recordings=recordings, transcripts=transcripts, only=_parts("listen", only)
    )
    measure(run, options, json_file)


@app.command()
def asr(
    json_file: JsonFile = None,
    speech: SpeechDir = None,
    recordings: Annotated[int, typer.Option(min=0, max=1000, help="Number of recordings; 0: all.")] = 0,
    language: Annotated[str, typer.Option(help="The language that is spoken.")] = "en",
    loss: Annotated[float, typer.Option(min=0, max=0.5, help="The share of packets that is lost.")] = 0.05,
    only: Only = None,
) -> None:
    """Measure the recogniser's errors and cost."""
    from benchmarks.asr.bench import AsrBenchOptions, run

    options = AsrBenchOptions(
        speech=speech, recordings=recordings, language=language, loss=loss, only=_parts("asr", only)
    )
    measure(run, options, json_file)


@app.command()
def load(json_file: JsonFile = None, only: Only = None, quick: Quick = False) -> None:
    """Measure what many people cost, and whether anything grows."""
    from benchmarks.load.bench import LoadBenchOptions, run

    parts = _parts("load", only)
    measure(run, LoadBenchOptions.quick(only=parts) if quick else LoadBenchOptions(only=parts), json_file)


@app.command()
def cluster(
    json_file: JsonFile = None,
    speech: SpeechDir = None,
    calls: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Number of pairs of recognitions; default 100.")
    ] = None,
    quick: Quick = False,
) -> None:
    """Measure what the recogniser service and a bot take."""
    from benchmarks.cluster.bench import ClusterBenchOptions, run

    options = ClusterBenchOptions.quick(speech) if quick else ClusterBenchOptions(speech)
    measure(run, options if calls is None else replace(options, calls=calls), json_file)


def _parts(bench: str, only: list[str] | None) -> tuple[str, ...]:
    if unknown := sorted(set(only or ()) - set(PARTS[bench])):
        raise typer.BadParameter(f"--only {unknown[0]} is none of {', '.join(PARTS[bench])}.")
    return tuple(only or ())
