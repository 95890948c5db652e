"""`roomtone bench`: the group of commands that each run one benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.bench import memory as bench_memory
from bot.cli.bench.measuring import JsonFile, PeersDir, measure, refuse_unknown, without_defaults
from bot.cli.output import open_console, say

app = typer.Typer(
    name="bench",
    help="Run benchmarks. Each can write its results as one JSON object.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# What each benchmark can measure alone.
ASR_PARTS = ("questions", "alone", "opus", "company")
ASR_PEERS = ("faster-whisper", "faster-whisper, batched", "whisper.cpp")
RECEIVE_PARTS = ("link", "bot")
REPLY_PARTS = ("pauses", "deciding", "latency", "speakers", "interruption", "pacing")

SpeechDir = Annotated[
    Path | None,
    typer.Option(help="Use the real recordings of DIR/manifest.json.", metavar="DIR", file_okay=False),
]


# First in the list of commands.
app.command(name="memory")(bench_memory.command)


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
    quick: Annotated[bool, typer.Option("--quick", help="A short run of everything, one or two minutes.")] = False,
) -> None:
    """Measure how fast and how rightly the bot answers and stops."""
    from benchmarks.reply.bench import run
    from benchmarks.reply.options import ReplyBenchOptions

    refuse_unknown("--only", only, REPLY_PARTS)
    given = {
        "speech": speech,
        "recordings": recordings,
        "interruptions": interruptions,
        "rooms": rooms,
        "first_token_ms": first_token_ms,
        "only": tuple(only) if only else None,
    }
    options = (ReplyBenchOptions.quick if quick else ReplyBenchOptions)(**without_defaults(given))
    measure(run, options, json_file)


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
    """Measure how often the bot speaks where nobody means it."""
    from benchmarks.unasked.bench import run
    from benchmarks.unasked.options import UnaskedBenchOptions

    given = {"transcripts": transcripts, "names": tuple(name) if name else None, "texts": texts}
    options = UnaskedBenchOptions(**without_defaults(given))
    measure(run, options, json_file)


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
    in_step: Annotated[
        int | None,
        typer.Option(
            min=0, max=200, help="How many speak with their packets at the same moments; default 200, 0: nobody."
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=1, max=60, help="For how long they are measured; the whole bot always for 30 s.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help=f"Only this part: {', '.join(RECEIVE_PARTS)}. May be repeated.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short run of everything, half a minute.")] = False,
) -> None:
    """Measure what receiving many people costs."""
    from benchmarks.receive.bench import run
    from benchmarks.receive.options import ReceiveBenchOptions

    refuse_unknown("--only", only, RECEIVE_PARTS)
    given = {
        "speakers": tuple(speakers) if speakers else None,
        "bot_speakers": tuple(bot_speakers) if bot_speakers else None,
        "in_step": in_step,
        "seconds": seconds,
        "only": tuple(only) if only else None,
    }
    options = (ReceiveBenchOptions.quick if quick else ReceiveBenchOptions)(**without_defaults(given))
    measure(run, options, json_file)


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
    peer: Annotated[
        list[str] | None, typer.Option(help=f"Only this other recogniser: {'; '.join(ASR_PEERS)}. May be repeated.")
    ] = None,
    peers_dir: PeersDir = None,
    ggml: Annotated[
        Path | None,
        typer.Option(
            help="Another model for whisper.cpp, in its ggml format; without it, the measured model is converted.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Measure the recogniser's errors, cost and delay. Other recognisers are measured beside it."""
    from benchmarks.asr.bench import run
    from benchmarks.asr.options import AsrBenchOptions

    refuse_unknown("--only", only, ASR_PARTS)
    refuse_unknown("--peer", peer, ASR_PEERS)
    options = AsrBenchOptions(
        manifest=manifest,
        recordings=recordings,
        company_recordings=company_recordings,
        language=language,
        loss=loss,
        peers=() if no_peers else tuple(peer or ASR_PEERS),
        peers_dir=peers_dir,
        ggml=ggml,
        only=tuple(only or ()),
    )
    measure(run, options, json_file)


@app.command()
def leaks(
    json_file: JsonFile = None,
    joins: Annotated[int, typer.Option(min=8, max=100_000, help="How often the bot joins and leaves.")] = 1000,
    packets: Annotated[int, typer.Option(min=800, max=10_000_000, help="How many packets arrive.")] = 100_000,
    encrypted: Annotated[
        int, typer.Option(min=800, max=10_000_000, help="How many packets arrive with end-to-end encryption.")
    ] = 40_000,
) -> None:
    """Measure whether memory, threads, files and tasks stay flat."""
    from benchmarks.leaks.bench import LeaksBenchOptions, run

    options = LeaksBenchOptions(joins=joins, packets=packets, encrypted=encrypted)
    measure(run, options, json_file)


@app.command()
def store(
    json_file: JsonFile = None,
    database: Annotated[
        str | None, typer.Option(help="A PostgreSQL database, in which a schema is made and dropped.", metavar="URL")
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="How long each number of processes writes.")] = 10.0,
) -> None:
    """Measure how many turns several processes store in PostgreSQL."""
    from benchmarks.store.bench import StoreBenchOptions, run
    from config.load import load

    if database is None and (url := load().storage.database_url) is not None:
        database = url.get_secret_value()
    measure(run, StoreBenchOptions(database, seconds), json_file)


@app.command()
def cluster(
    json_file: JsonFile = None,
    speech: SpeechDir = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short run of everything, five minutes.")] = False,
) -> None:
    """Measure the recogniser service, and what a bot with rooms takes."""
    from benchmarks.cluster.bench import run
    from benchmarks.cluster.options import ClusterBenchOptions

    options = ClusterBenchOptions.quick(speech=speech) if quick else ClusterBenchOptions(speech=speech)
    measure(run, options, json_file)


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
    """Measure how well the end of speech is told from a pause. Plain silence is measured beside it."""
    from benchmarks.endpoint.bench import run
    from benchmarks.endpoint.options import EndpointBenchOptions

    options = (EndpointBenchOptions.quick if quick else EndpointBenchOptions)(speech=speech, talk=talk)
    measure(run, options, json_file)
