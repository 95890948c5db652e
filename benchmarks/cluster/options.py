"""The options of the recogniser pool's benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ClusterBenchOptions:
    """The options of one run. The defaults are a full run.

    `speech`: a folder of real recordings with a manifest.json; without it the sound of the bundled scenarios is used.
    `calls`: pairs of recognitions, one by the pool and one in process. `recognisers`: the sizes of the pool.
    `speakers`: how many people speak at once to each of these. `seconds`: for how long. `rooms`: how many rooms in
    processes, and how many of them share one; half of them run on a machine that is drained. `room_seconds`: of silence
    and of speech there.
    """

    speech: Path | None = None
    calls: int = 100
    recognisers: tuple[int, ...] = (1, 2, 3)
    speakers: int = 6
    seconds: float = 30.0
    rooms: tuple[tuple[int, int], ...] = ((2, 1), (6, 1), (6, 3))
    room_seconds: float = 30.0

    @classmethod
    def quick(cls, *, speech: Path | None = None) -> ClusterBenchOptions:
        """Return a short run that still measures everything."""
        return cls(
            speech=speech, calls=5, recognisers=(1, 2), speakers=3, seconds=3.0, rooms=((2, 1),), room_seconds=6.0
        )
