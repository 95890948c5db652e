"""What the bot's recogniser did while it was measured: how busy it was, what it made text of, and what was dropped.

The room's events tell of every utterance at once. How long the recogniser computed and how many interim recognitions it
dropped is in the bot's metrics only, as for whoever runs a bot.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.events import InterimTranscribed, SpeechDropped, UtteranceTranscribed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.events import Event

_DROPPED = 'roomtone_recognitions_total{outcome="shed"}'
_COMPUTE = "roomtone_recogniser_compute_seconds_total"
_AUDIO = "roomtone_recogniser_audio_seconds_total"


@dataclass(frozen=True, slots=True)
class RecogniserCounts:
    """Counts of the recogniser since the bot's start. `compute_s`: wall time in the model. `interim_dropped`: guesses
    at speech that may go on, and careful second passes, which give way to finished speech.
    """

    compute_s: float = 0.0
    audio_s: float = 0.0
    interim_dropped: float = 0.0

    @classmethod
    def of(cls, metrics: str) -> RecogniserCounts:
        """Read them from the bot's metrics, in Prometheus' format. All are 0 if it has no recogniser of its own."""
        samples = (line.rpartition(" ") for line in metrics.splitlines() if not line.startswith("#"))
        found = {name: value for name, _, value in samples}
        return cls(*(float(found.get(name, 0.0)) for name in (_COMPUTE, _AUDIO, _DROPPED)))


class RecogniserWork:
    """The recogniser's work since `begin`. `metrics`: returns the bot's metrics in Prometheus' format."""

    def __init__(self, metrics: Callable[[], Awaitable[str]]) -> None:
        self._metrics = metrics
        self._before = RecogniserCounts()
        self._texts = self._interim_texts = 0
        self._dropped: Counter[str] = Counter()

    async def begin(self) -> None:
        """Count from here on."""
        self._before = RecogniserCounts.of(await self._metrics())
        self._texts = self._interim_texts = 0
        self._dropped.clear()

    def observe(self, event: Event) -> None:
        """Take note of a room's event."""
        match event:
            case UtteranceTranscribed():
                self._texts += 1
            case InterimTranscribed():
                self._interim_texts += 1
            case SpeechDropped(reason=reason):
                self._dropped[reason] += 1
            case _:
                pass

    async def figures(self, wall_s: float) -> dict[str, object]:
        """Return the figures of the `wall_s` seconds since `begin`.

        `busy`: the share of that time in which it computed. A recognition counts when it ends, so the share may be a
        little above 1. `speech_s`: the sound that it heard. `texts`: finished utterances that became text;
        `interim_texts`: guesses in a pause. `dropped`: sounds without a text, by reason; `interim_dropped`: guesses.
        """
        counts = RecogniserCounts.of(await self._metrics())
        return {
            "busy": round((counts.compute_s - self._before.compute_s) / wall_s, 4),
            "speech_s": round(counts.audio_s - self._before.audio_s, 1),
            "texts": self._texts,
            "interim_texts": self._interim_texts,
            "dropped": dict(sorted(self._dropped.items())),
            "interim_dropped": int(counts.interim_dropped - self._before.interim_dropped),
        }
