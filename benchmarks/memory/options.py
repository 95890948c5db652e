"""The options of the memory benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

CHECKPOINTS = (5, 20, 100)


@dataclass(frozen=True, slots=True)
class MemoryBenchOptions:
    """The choices of one run; the defaults are a whole one.

    `folds`: the longest course of who needs no model; `model_folds` of who does, since a small local model takes
    half a minute a fold. `evenings`: made-up evenings of each template set; `model_evenings` for who needs a model,
    of the held-out set alone unless `model_tuning`.
    `only` names the contenders to hear; all of them
    without. `base_url` and `model` name an endpoint that is there already; without them one is started where it can be.
    `transcripts`: a directory of conversations to measure with instead of made-up ones. `peers`: install and run
    other libraries too; `peers_dir` keeps their environments for the next run.
    """

    folds: int = 100
    model_folds: int = 20
    evenings: int = 4
    model_evenings: int = 1
    model_tuning: bool = False
    only: tuple[str, ...] = ()
    seed: int = 1
    base_url: str = ""
    model: str = ""
    api_key: str = ""
    model_file: Path | None = None
    llama_python: str = ""
    with_model: bool = True
    transcripts: Path | None = None
    embeddings: bool = True
    peers: bool = True
    peers_dir: Path | None = None
    turns: int = 10_000
    search_turns: int = 100_000


def checkpoints(longest: int) -> tuple[int, ...]:
    """Return after how many folds is looked, the last being `longest`."""
    return (*(folds for folds in CHECKPOINTS if folds < longest), longest)
