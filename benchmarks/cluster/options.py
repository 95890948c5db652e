"""The options of the cluster's benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ClusterBenchOptions:
    """The options of one run. The defaults are a full run.

    `speech`: a folder of real recordings with a manifest.json; without it the sound of the bundled scenarios is used.
    `calls`: pairs of recognitions, one by the service and one in process. `recognisers`: the sizes of the service.
    `speakers`: how many people speak at once to each of these. `seconds`: for how long. `rooms`: how many rooms a bot
    has. `room_seconds`: of silence and of speech there.
    """

    speech: Path | None = None
    calls: int = 100
    recognisers: tuple[int, ...] = (1, 2)
    speakers: int = 6
    seconds: float = 30.0
    rooms: tuple[int, ...] = (1, 6)
    room_seconds: float = 30.0

    @classmethod
    def quick(cls, *, speech: Path | None = None) -> ClusterBenchOptions:
        """Return a short run that still measures everything."""
        return cls(speech, calls=5, recognisers=(1,), speakers=3, seconds=3.0, rooms=(1,), room_seconds=6.0)
