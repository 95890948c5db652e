"""What the recogniser pool may use: how many recognisers, and what each of them takes of its machine."""

from __future__ import annotations

from dataclasses import dataclass

from bot.errors import SetupError

# Recognisers that one pool may have. A mistyped number must not fill a cluster.
MOST_RECOGNISERS = 256


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """`least`, `most`: recognisers at any time; the cluster adds one when speech waits and removes it when none does.

    `cpus`, `gpus`: what each one reserves. A fraction of a GPU is Ray's bookkeeping and no limit of the GPU's memory:
    four recognisers with 0.25 each share one GPU and must fit into it together.

    Raises `SetupError` if the numbers make no pool.
    """

    least: int = 1
    most: int = 1
    cpus: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most <= MOST_RECOGNISERS:
            raise SetupError(
                f"A pool has between 1 and {MOST_RECOGNISERS} recognisers; "
                f"{self.least} to {self.most} is none. Give --recognisers as MIN-MAX, for example 1-4."
            )
        if self.cpus < 0 or self.gpus < 0 or self.cpus + self.gpus == 0:
            raise SetupError("Each recogniser needs a part of a CPU or of a GPU: give --cpus or --gpus above 0.")
