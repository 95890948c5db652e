"""The options of the memory benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.memory.folders import ANSWERS

if TYPE_CHECKING:
    from pathlib import Path


CHECKPOINTS = (5, 20, 100)


@dataclass(frozen=True, slots=True)
class MemoryBenchOptions:
    """The options of one run. The defaults are a full run.

    `folds`: the maximum number of folds for systems without a language model. `model_folds`: the same for systems with
    one, because a small local model takes half a minute for a fold. `evenings`: generated evenings of each template
    set. `model_evenings`: the same for systems with a language model; they use only the held-out set unless
    `model_tuning` is set, and with 0 only the written conversations. `only`: names of systems; None means all.
    `base_url` and `model` name an existing endpoint; without them the run starts a model if possible. `transcripts`: a
    directory of conversations to measure with too. `parts`: the parts to measure; none means all.
    `answers`: the folder of recorded answers.
    `unread`: where to write the texts about the written conversations that no reader has judged yet.
    `peers`: install and run other libraries too. `peers_dir` keeps their environments for the next run.
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
    parts: tuple[str, ...] = ()
    answers: Path = ANSWERS
    transcripts: Path | None = None
    embeddings: bool = True
    unread: Path | None = None
    peers: bool = True
    peers_dir: Path | None = None
    turns: int = 10_000
    search_turns: int = 100_000


def checkpoints(longest: int) -> tuple[int, ...]:
    """Return the numbers of folds at which systems are judged. The last one is `longest`."""
    return (*(folds for folds in CHECKPOINTS if folds < longest), longest)
