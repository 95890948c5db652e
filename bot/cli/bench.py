"""`roomtone bench`: runs one benchmark and shows its results."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.output import open_console, say
from bot.cli.progress_bar import ProgressBar
from bot.cli.signals import until_stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import BenchmarkReport

app = typer.Typer(
    name="bench",
    help="Run benchmarks. Each can write its results as one JSON object.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_FILE_WIDTH = 150
# What each benchmark can measure alone.
ASR_PARTS = ("alone", "opus", "company")
# `speed`: the cost of a reply and of a search. `facts`: the race of all systems.
MEMORY_PARTS = ("speed", "search", "barge_in", "cases", "facts")
RECEIVE_PARTS = ("link", "bot", "node", "decoders")
REPLY_PARTS = ("pauses", "deciding", "latency", "speakers", "interruption", "pacing")
REPLY_PEERS = ("pipecat",)

JsonFile = Annotated[
    Path | None, typer.Option("--json", help="Write the results as JSON to this file.", metavar="FILE", dir_okay=False)
]
PeersDir = Annotated[
    Path | None, typer.Option(help="Keep the other libraries' environments here.", metavar="DIR", file_okay=False)
]

SpeechDir = Annotated[
    Path | None,
    typer.Option(help="Use the real recordings of DIR/manifest.json.", metavar="DIR", file_okay=False),
]


@app.callback()
def listing(context: typer.Context) -> None:
    """List the benchmarks when none is named."""
    if context.invoked_subcommand is not None:
        return
    from rich.table import Table

    from benchmarks.registry import BENCHMARKS

    table = Table(box=None, pad_edge=False)
    for heading in ("benchmark", "what it measures", "takes"):
        table.add_column(heading)
    for entry in BENCHMARKS:
        table.add_row(entry.name, entry.title, entry.duration)
    open_console().print(table)
    say("\nRun one with `roomtone bench NAME [--json FILE]`; `roomtone bench NAME -h` shows its options.")


@app.command()
def memory(
    json_file: JsonFile = None,
    folds: Annotated[int, typer.Option(min=1, max=1000, help="Folds for contenders without a language model.")] = 100,
    model_folds: Annotated[int, typer.Option(min=1, max=1000, help="Folds for contenders with a language model.")] = 20,
    evenings: Annotated[int, typer.Option(min=1, max=100, help="Generated evenings for each template set.")] = 4,
    model_evenings: Annotated[
        int,
        typer.Option(min=0, max=100, help="The same, for contenders with a language model; 0: only written ones."),
    ] = 1,
    model_tuning: Annotated[
        bool, typer.Option("--model-tuning", help="Run contenders with a language model on the tuning evenings too.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this contender, for example ledger. May be repeated.")
    ] = None,
    part: Annotated[
        list[str] | None, typer.Option(help=f"Only this part: {', '.join(MEMORY_PARTS)}. May be repeated.")
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(help="Replay the recorded answers in this folder.", metavar="DIR", file_okay=False),
    ] = None,
    unread: Annotated[
        Path | None,
        typer.Option(
            help="Write the texts that no reader has judged yet to this file.", metavar="FILE", dir_okay=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the first evening.")] = 1,
    base_url: Annotated[
        str, typer.Option(help="An OpenAI-compatible endpoint, for example http://127.0.0.1:11434/v1.")
    ] = "",
    model: Annotated[str, typer.Option(help="The name of the model at that endpoint.")] = "",
    no_model: Annotated[bool, typer.Option("--no-model", help="Measure only what needs no language model.")] = False,
    no_embeddings: Annotated[bool, typer.Option("--no-embeddings", help="Search by full text only.")] = False,
    no_peers: Annotated[bool, typer.Option("--no-peers", help="Do not measure other libraries.")] = False,
    peers_dir: PeersDir = None,
    transcripts: Annotated[
        Path | None,
        typer.Option(
            help="Measure with these conversations too: JSON lines, or files of LoCoMo, QMSum or CRD3.",
            metavar="DIR",
            file_okay=False,
        ),
    ] = None,
    model_file: Annotated[
        Path | None, typer.Option(help="A GGUF file for the local model.", metavar="FILE", dir_okay=False)
    ] = None,
    llama_python: Annotated[
        str, typer.Option(help="A Python that has llama-cpp-python with its server, if this one hasn't.")
    ] = "",
    turns: Annotated[int, typer.Option(min=100, help="Turns in the session that replies are measured in.")] = 10_000,
    search_turns: Annotated[int, typer.Option(min=100, help="Turns in the database that is searched.")] = 100_000,
) -> None:
    """Measure what is remembered after 5, 20 and 100 folds, and what memory costs a reply."""
    from benchmarks.memory.bench import run
    from benchmarks.memory.options import ANSWERS, MemoryBenchOptions

    _refuse_unknown("--part", part, MEMORY_PARTS)
    options = MemoryBenchOptions(
        folds=folds,
        model_folds=model_folds,
        evenings=evenings,
        model_evenings=model_evenings,
        model_tuning=model_tuning,
        only=tuple(only or ()),
        seed=seed,
        base_url=base_url,
        model=model,
        model_file=model_file,
        llama_python=llama_python,
        with_model=not no_model,
        parts=tuple(part or ()),
        answers=answers or ANSWERS,
        unread=unread,
        transcripts=transcripts,
        embeddings=not no_embeddings,
        peers=not no_peers,
        peers_dir=peers_dir,
        turns=turns,
        search_turns=search_turns,
    )
    _measure(lambda progress, on_part: run(options, progress, on_part=on_part), json_file)


@app.command()
def reply(
    json_file: JsonFile = None,
    speech: SpeechDir = None,
    recordings: Annotated[
        int | None,
        typer.Option(min=0, max=1000, help="Number of recordings to answer, one after the other; default 50, 0: all."),
    ] = None,
    interruptions: Annotated[int | None, typer.Option(min=1, max=1000, help="Number of answers to interrupt.")] = None,
    rooms: Annotated[
        int | None, typer.Option(min=1, max=100, help="Number of rooms that talk at the same time.")
    ] = None,
    first_token_ms: Annotated[
        float | None, typer.Option(min=0, max=10_000, help="How long the model's server takes for its first token.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help=f"Only this part: {', '.join(REPLY_PARTS)}. May be repeated.")
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(help=f"Measure this system's answers too: {', '.join(REPLY_PEERS)}. May be repeated."),
    ] = None,
    peers_dir: PeersDir = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short run of everything, one or two minutes.")] = False,
) -> None:
    """Measure reply latency, the decision to answer, interruption, and many rooms at once."""
    from benchmarks.reply.bench import run
    from benchmarks.reply.options import ReplyBenchOptions

    _refuse_unknown("--only", only, REPLY_PARTS)
    _refuse_unknown("--peer", peer, REPLY_PEERS)
    given = {
        "speech": speech,
        "recordings": recordings,
        "interruptions": interruptions,
        "rooms": rooms,
        "first_token_ms": first_token_ms,
        "only": tuple(only) if only else None,
        "peers": tuple(peer) if peer else None,
        "peers_dir": peers_dir,
    }
    options = (ReplyBenchOptions.quick if quick else ReplyBenchOptions)(**_without_defaults(given))
    _measure(lambda progress, on_part: run(options, progress, on_part=on_part), json_file)


@app.command()
def unasked(
    json_file: JsonFile = None,
    transcripts: Annotated[
        Path | None,
        typer.Option(
            help="Play these conversations: JSON lines, or files of QMSum or CRD3.", metavar="DIR", file_okay=False
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A name for the bot besides its default one. May be repeated; default Nova, Max, Echo."),
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Quote what would have been answered, not only its line.")
    ] = False,
) -> None:
    """Measure how often the bot speaks in real talk among people of whom nobody means it."""
    from benchmarks.unasked.bench import run
    from benchmarks.unasked.options import UnaskedBenchOptions

    given = {"transcripts": transcripts, "names": tuple(name) if name else None, "texts": texts}
    options = UnaskedBenchOptions(**_without_defaults(given))
    _measure(lambda progress, on_part: run(options, progress, on_part=on_part), json_file)


@app.command()
def receive(
    json_file: JsonFile = None,
    speakers: Annotated[
        list[int] | None,
        typer.Option(min=1, max=200, help="How many people speak at once. May be repeated; default 10, 50, 100, 150."),
    ] = None,
    bot_speakers: Annotated[
        list[int] | None, typer.Option(min=1, max=200, help="The same, for the whole bot; default 50, 100.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=1, max=60, help="How long they speak.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help=f"Only this part: {', '.join(RECEIVE_PARTS)}. May be repeated.")
    ] = None,
    node_dir: Annotated[
        Path | None, typer.Option(help="Keep the packages of the Node.js peer here.", metavar="DIR", file_okay=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short run of everything, half a minute.")] = False,
) -> None:
    """Measure what it costs to receive many people who speak at once, beside other libraries."""
    from benchmarks.receive.bench import run
    from benchmarks.receive.options import ReceiveBenchOptions

    _refuse_unknown("--only", only, RECEIVE_PARTS)
    given = {
        "speakers": tuple(speakers) if speakers else None,
        "bot_speakers": tuple(bot_speakers) if bot_speakers else None,
        "seconds": seconds,
        "only": tuple(only) if only else None,
        "node_dir": node_dir,
    }
    options = (ReceiveBenchOptions.quick if quick else ReceiveBenchOptions)(**_without_defaults(given))
    _measure(lambda progress, on_part: run(options, progress, on_part=on_part), json_file)


@app.command()
def asr(
    json_file: JsonFile = None,
    manifest: Annotated[
        Path | None, typer.Option(help="Use the real recordings of this manifest.json (or its folder).", metavar="FILE")
    ] = None,
    recordings: Annotated[
        int, typer.Option(min=0, max=1000, help="Number of recordings alone and through Opus; 0: all.")
    ] = 0,
    company_recordings: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of recordings that people speak at the same time.")
    ] = 24,
    language: Annotated[str, typer.Option(help="The language that is spoken.")] = "en",
    loss: Annotated[float, typer.Option(min=0, max=0.5, help="The share of packets that is lost.")] = 0.05,
    only: Annotated[
        list[str] | None, typer.Option(help=f"Only this part: {', '.join(ASR_PARTS)}. May be repeated.")
    ] = None,
    no_peers: Annotated[bool, typer.Option("--no-peers", help="Do not measure other recognisers.")] = False,
    peers_dir: PeersDir = None,
    ggml: Annotated[
        Path | None, typer.Option(help="A ggml model, with which whisper.cpp is measured.", metavar="FILE")
    ] = None,
) -> None:
    """Measure word errors, CPU time and delay of the recogniser, beside other recognisers."""
    from benchmarks.asr.bench import run
    from benchmarks.asr.options import AsrBenchOptions

    _refuse_unknown("--only", only, ASR_PARTS)
    options = AsrBenchOptions(
        manifest=manifest,
        recordings=recordings,
        company_recordings=company_recordings,
        language=language,
        loss=loss,
        peers=not no_peers,
        peers_dir=peers_dir,
        ggml=ggml,
        only=tuple(only or ()),
    )
    _measure(lambda progress, on_part: run(options, progress, on_part=on_part), json_file)


@app.command()
def leaks(
    json_file: JsonFile = None,
    joins: Annotated[int, typer.Option(min=8, max=100_000, help="How often the bot joins and leaves.")] = 1000,
    packets: Annotated[int, typer.Option(min=800, max=10_000_000, help="How many packets arrive.")] = 100_000,
) -> None:
    """Measure whether memory, threads, files and tasks stay flat."""
    from benchmarks.leaks.bench import LeaksBenchOptions, run

    options = LeaksBenchOptions(joins=joins, packets=packets)
    _measure(lambda progress, on_part: run(options, progress, on_part=on_part), json_file)


@app.command()
def cluster(
    json_file: JsonFile = None,
    speech: SpeechDir = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short run of everything, five minutes.")] = False,
) -> None:
    """Measure what the pool of recognisers costs, what more recognisers bring, and what rooms in processes take."""
    from benchmarks.cluster.bench import run
    from benchmarks.cluster.options import ClusterBenchOptions

    options = ClusterBenchOptions.quick(speech=speech) if quick else ClusterBenchOptions(speech=speech)
    _measure(lambda progress, on_part: run(options, progress, on_part=on_part), json_file)


@app.command()
def endpoint(
    json_file: JsonFile = None,
    speech: SpeechDir = None,
    talk: Annotated[
        Path | None,
        typer.Option(
            help="Use the free talk in DIR too; it is made there the first time, with the voices joe and kokoro.",
            metavar="DIR",
            file_okay=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Four recordings of each set.")] = False,
) -> None:
    """Measure how many pauses inside speech are cut against how late an end is known, beside plain silence."""
    from benchmarks.endpoint.bench import run
    from benchmarks.endpoint.options import EndpointBenchOptions

    options = (EndpointBenchOptions.quick if quick else EndpointBenchOptions)(speech=speech, talk=talk)
    _measure(lambda progress, on_part: run(options, progress, on_part=on_part), json_file)


@app.command()
def screen(
    json_file: JsonFile = None,
    seed: Annotated[int, typer.Option(help="The same seed generates the same screens and hours.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A short run of everything, some seconds.")] = False,
) -> None:
    """Measure what is noticed and read on a shared screen, how fast, and what an hour costs."""
    from dataclasses import replace

    from benchmarks.screen.bench import run
    from benchmarks.screen.options import ScreenBenchOptions

    options = replace(ScreenBenchOptions.quick() if quick else ScreenBenchOptions(), seed=seed)
    _measure(lambda progress, on_part: run(options, progress, on_part=on_part), json_file)


def _without_defaults(given: Mapping[str, object]) -> dict[str, Any]:
    """Return the options that somebody chose; those that are None keep the benchmark's own default."""
    return {name: value for name, value in given.items() if value is not None}


def _refuse_unknown(option: str, given: Sequence[str] | None, known: Sequence[str]) -> None:
    """Refuse a value of an option that may be repeated. Raises `typer.BadParameter`."""
    if unknown := sorted(set(given or ()) - set(known)):
        raise typer.BadParameter(f"{option} {unknown[0]} is none of {', '.join(known)}.")


def _measure(
    run: Callable[[Progress, Callable[[BenchmarkReport], None]], Coroutine[object, object, BenchmarkReport]],
    json_file: Path | None,
) -> None:
    """Run a benchmark with its progress shown, and show its report. The file has what was measured so far."""
    with ProgressBar() as progress:
        report = asyncio.run(until_stopped(run(progress, lambda part: _write(part, json_file))))
    _tell(report, json_file)


def _write(report: BenchmarkReport, json_file: Path | None) -> None:
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(report.as_json(), "utf-8")


def _tell(report: BenchmarkReport, json_file: Path | None) -> None:
    from benchmarks.report_tables import render_report

    # Do not wrap tables that are written to a file.
    out = open_console(width=None if sys.stdout.isatty() else _FILE_WIDTH)
    out.print(render_report(report))
    _write(report, json_file)
    if json_file is not None:
        say(f"The figures are in {json_file}.")
