"""What the recogniser pool may use: how many recognisers, and what each of them takes of its machine."""

from __future__ import annotations

from dataclasses import dataclass

from bot.cluster.resources import cpus_in_words, gpus_in_words
from bot.errors import SetupError

# Recognisers that one pool may have. A mistyped number must not fill a cluster.
MOST_RECOGNISERS = 256
# Utterances that a recogniser takes at once: a GPU computes a few in the time of one, a CPU does not (decision 0023).
GPU_BATCH, CPU_BATCH, MOST_BATCH = 8, 1, 32


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """`least`, `most`: recognisers at any time; the cluster adds one when speech waits and removes it when none does.

    `cpus`, `gpus`: what each one reserves. A fraction of a GPU is Ray's bookkeeping and no limit of the GPU's memory:
    four recognisers with 0.25 each share one GPU and must fit into it together. `batch`: how many utterances of like
    length a recogniser takes at once if so many wait; 0: `GPU_BATCH` with a part of a GPU, else `CPU_BATCH`.

    Raises `SetupError` if the numbers make no pool.
    """

    least: int = 1
    most: int = 1
    cpus: float = 1.0
    gpus: float = 0.0
    batch: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most <= MOST_RECOGNISERS:
            raise SetupError(
                f"A pool has between 1 and {MOST_RECOGNISERS} recognisers; "
                f"{self.least} to {self.most} is none. Give them as MIN-MAX, for example 1-4."
            )
        if self.cpus < 0 or self.gpus < 0 or self.cpus + self.gpus == 0:
            raise SetupError("Each recogniser needs a part of a CPU or of a GPU: give --cpus or --gpus above 0.")
        if not 0 <= self.batch <= MOST_BATCH:
            raise SetupError(f"A recogniser takes 1 to {MOST_BATCH} utterances at once: give --batch so many.")

    @property
    def batch_size(self) -> int:
        """Return how many utterances a recogniser takes at once."""
        return self.batch or (GPU_BATCH if self.gpus else CPU_BATCH)

    @property
    def reserved(self) -> str:
        """Return what each recogniser reserves, for the operator."""
        return f"{cpus_in_words(self.cpus)} and {gpus_in_words(self.gpus)}"

    @property
    def device(self) -> str:
        """Return the device of a recogniser (`asr.device`): none uses a GPU of which it reserved no part."""
        return "auto" if self.gpus else "cpu"
