"""`roomtone bench memory`: what is remembered after many folds, and what memory costs a reply."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.bench.measuring import JsonFile, PeersDir, measure, refuse_unknown

# What it can measure alone. `speed`: the cost of a reply and of a search. `facts`: the race of all systems.
PARTS = ("speed", "search", "barge_in", "cases", "facts")

Folds = Annotated[int, typer.Option(min=1, max=1000, help="Folds for contenders without a language model.")]
ModelFolds = Annotated[int, typer.Option(min=1, max=1000, help="Folds for contenders with a language model.")]
Evenings = Annotated[int, typer.Option(min=1, max=100, help="Generated evenings for each template set.")]
ModelEvenings = Annotated[
    int, typer.Option(min=0, max=100, help="The same, for contenders with a language model; 0: only written ones.")
]
ModelTuning = Annotated[
    bool, typer.Option("--model-tuning", help="Run contenders with a language model on the tuning evenings too.")
]
Only = Annotated[list[str] | None, typer.Option(help="Only this contender, for example ledger. May be repeated.")]
Part = Annotated[list[str] | None, typer.Option(help=f"Only this part: {', '.join(PARTS)}. May be repeated.")]
Answers = Annotated[
    Path | None, typer.Option(help="Replay the recorded answers in this folder.", metavar="DIR", file_okay=False)
]
Unread = Annotated[
    Path | None,
    typer.Option(help="Write the texts that no reader has judged yet to this file.", metavar="FILE", dir_okay=False),
]
Seed = Annotated[int, typer.Option(help="The seed of the first evening.")]
BaseUrl = Annotated[str, typer.Option(help="An OpenAI-compatible endpoint, for example http://127.0.0.1:11434/v1.")]
Model = Annotated[str, typer.Option(help="The name of the model at that endpoint.")]
NoModel = Annotated[bool, typer.Option("--no-model", help="Measure only what needs no language model.")]
NoEmbeddings = Annotated[bool, typer.Option("--no-embeddings", help="Search by full text only.")]
NoPeers = Annotated[bool, typer.Option("--no-peers", help="Do not measure other libraries.")]
Transcripts = Annotated[
    Path | None,
    typer.Option(
        help="Measure with these conversations too: JSON lines, or files of LoCoMo, QMSum or CRD3.",
        metavar="DIR",
        file_okay=False,
    ),
]
ModelFile = Annotated[
    Path | None, typer.Option(help="A GGUF file for the local model.", metavar="FILE", dir_okay=False)
]
LlamaPython = Annotated[
    str, typer.Option(help="A Python that has llama-cpp-python with its server, if this one hasn't.")
]
Turns = Annotated[int, typer.Option(min=100, help="Turns in the session that replies are measured in.")]
SearchTurns = Annotated[int, typer.Option(min=100, help="Turns in the database that is searched.")]


def command(
    json_file: JsonFile = None,
    folds: Folds = 100,
    model_folds: ModelFolds = 20,
    evenings: Evenings = 4,
    model_evenings: ModelEvenings = 1,
    model_tuning: ModelTuning = False,
    only: Only = None,
    part: Part = None,
    answers: Answers = None,
    unread: Unread = None,
    seed: Seed = 1,
    base_url: BaseUrl = "",
    model: Model = "",
    no_model: NoModel = False,
    no_embeddings: NoEmbeddings = False,
    no_peers: NoPeers = False,
    peers_dir: PeersDir = None,
    transcripts: Transcripts = None,
    model_file: ModelFile = None,
    llama_python: LlamaPython = "",
    turns: Turns = 10_000,
    search_turns: SearchTurns = 100_000,
) -> None:
    """Measure what is remembered, and what that costs a reply."""
    from benchmarks.memory.bench import run
    from benchmarks.memory.folders import ANSWERS
    from benchmarks.memory.options import MemoryBenchOptions

    refuse_unknown("--part", part, PARTS)
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
    measure(run, options, json_file)
