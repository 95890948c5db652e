"""`roomtone bench memory`: what the memory without a model keeps, and what memory costs a reply."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.bench.measuring import JsonFile, measure, refuse_unknown

# What it can measure alone. `speed`: the cost of a reply and of a search.
PARTS = ("extractive", "search", "speed")

Evenings = Annotated[int, typer.Option(min=1, max=100, help="Generated evenings for each template set.")]
Part = Annotated[list[str] | None, typer.Option(help=f"Only this part: {', '.join(PARTS)}. May be repeated.")]
Seed = Annotated[int, typer.Option(help="The seed of the first evening.")]
NoEmbeddings = Annotated[bool, typer.Option("--no-embeddings", help="Search by full text only.")]
Transcripts = Annotated[
    Path | None,
    typer.Option(
        help="Measure with these conversations too: JSON lines, or files of LoCoMo, QMSum or CRD3.",
        metavar="DIR",
        file_okay=False,
    ),
]
Turns = Annotated[int, typer.Option(min=100, help="Turns in the session that replies are measured in.")]
SearchTurns = Annotated[int, typer.Option(min=100, help="Turns in the database that is searched.")]


def command(
    json_file: JsonFile = None,
    evenings: Evenings = 4,
    part: Part = None,
    seed: Seed = 1,
    no_embeddings: NoEmbeddings = False,
    transcripts: Transcripts = None,
    turns: Turns = 10_000,
    search_turns: SearchTurns = 100_000,
) -> None:
    """Measure what memory keeps, and what a reply pays for it."""
    from benchmarks.memory.bench import run
    from benchmarks.memory.options import MemoryBenchOptions

    refuse_unknown("--part", part, PARTS)
    options = MemoryBenchOptions(
        evenings=evenings,
        seed=seed,
        parts=tuple(part or ()),
        transcripts=transcripts,
        embeddings=not no_embeddings,
        turns=turns,
        search_turns=search_turns,
    )
    measure(run, options, json_file)
