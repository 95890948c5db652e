"""The options of the endpoint benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class EndpointBenchOptions:
    """The options of one run. The defaults are a full run.

    `speech`: a folder of real recordings with a manifest; without it the audio of the bundled scenarios is used.
    `talk`: a folder for the free talk, which is made there if it is not there yet; None: no free talk. `recordings`:
    how many recordings of each set are observed; 0 means all.
    """

    speech: Path | None = None
    talk: Path | None = None
    recordings: int = 0

    @classmethod
    def quick(cls, **chosen: object) -> EndpointBenchOptions:
        """Return the options for a short run, which only checks that everything works."""
        return cls(**{"recordings": 4, **chosen})  # type: ignore[arg-type]
