"""`roomtone bench`: one command for each benchmark, with its options.

Benchmarks are imported when they run, so that the command line starts fast.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.bench.measuring import JsonFile, measure, refuse_unknown, without_defaults
from bot.cli.output import open_console, say

app = typer.Typer(
    help="Run benchmarks. Each can write its results as one JSON object.",
    invoke_without_command=True,
)

# What each benchmark can measure alone.
PARTS = {
    "memory": ("recorded", "extractive", "search", "languages", "speed"),
    "reply": ("latency", "speakers", "interruption"),
    "listen": ("deciding", "endpointing", "unasked"),
    "asr": ("questions", "alone", "opus"),
    "load": ("link", "bot", "leaks"),
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
    from rich.table import Table

    from benchmarks.registry import BENCHMARKS

    table = Table(box=None, pad_edge=False)
    for heading in ("benchmark", "what it measures", "takes", "parts"):
        table.add_column(heading)
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
    from benchmarks.reply.bench import run
    from benchmarks.reply.options import ReplyBenchOptions

    given = {
        "speech": speech,
        "recordings": recordings,
        "interruptions": interruptions,
        "first_token_ms": first_token_ms,
        "only": _parts("reply", only),
    }
    options = (ReplyBenchOptions.quick if quick else ReplyBenchOptions)(**without_defaults(given))
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
    from benchmarks.asr.bench import run
    from benchmarks.asr.options import AsrBenchOptions

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
    refuse_unknown("--only", only, PARTS[bench])
    return tuple(only or ())
