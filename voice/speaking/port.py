"""What the rest of Roomtone asks of a voice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from voice.audio import Pcm


@dataclass(frozen=True, slots=True)
class Speech:
    """One spoken piece of text: mono int16 at `rate_hz`."""

    text: str
    pcm: Pcm
    rate_hz: int


class Synthesizer(Protocol):
    """Speaks text."""

    async def synthesize(self, text: str) -> Speech:
        """Return `text` spoken. Raises `SynthesisError`."""
