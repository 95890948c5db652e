"""Measures how many pauses inside speech are taken for its end, and how soon an end is known.

Faster than real time and on the sound's own clock, so the figures do not depend on how busy a machine is; on another
processor a probability may differ. What the recogniser and the event loop add is in `roomtone bench reply`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.figures import cut_sample, number_at, sample_at, share_of, spread
from benchmarks.listen.observed_pauses import COUNTED_FROM_S, PauseObserver, observe_all
from benchmarks.listen.operating_points import operating_points
from benchmarks.report import Target, at_most
from voice.listening.end_policy import END_POLICY
from voice.listening.endpointing import ENDPOINTING, window_count
from voice.listening.vad import WINDOW_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.listen.observed_pauses import ObservedPause
    from benchmarks.measuring import Progress
    from benchmarks.recordings import SpeechRecording
    from benchmarks.report import Json
    from config.schema import Settings
    from voice.listening.end_policy import EndPolicy

PART = "endpointing"
# Each recording is observed twice, the second time shifted by half a window: where windows begin changes the decision
# for two pauses in seventy.
LEADS = (0, WINDOW_SAMPLES // 2)
CUT_SHARE, KNOWN_P50_MS = 0.06, 500.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the room's policy does to pauses. `known_after_s`: of each end, from the end of the voice."""

    inside: int
    cut: int
    known_after_s: tuple[float, ...]

    def as_json(self) -> dict[str, Json]:
        return {
            "pauses_inside": self.inside,
            "cut": self.cut,
            "cut_share": share_of(self.cut, self.inside),
            "end_known_after_ms": spread([seconds * 1000 for seconds in self.known_after_s]),
        }


def outcome(pauses: Sequence[ObservedPause], policy: EndPolicy = END_POLICY) -> Outcome:
    """Return what `policy` does to these pauses."""
    needed = [windows_needed(pause, policy) for pause in pauses]
    inside = [(pause.windows, windows) for pause, windows in zip(pauses, needed, strict=True) if pause.windows]
    return Outcome(
        len(inside),
        sum(windows <= lasted for lasted, windows in inside),
        tuple(pause.known_after_s(windows) for pause, windows in zip(pauses, needed, strict=True) if pause.is_end),
    )


def windows_needed(pause: ObservedPause, policy: EndPolicy = END_POLICY) -> int:
    """Return after how many silent windows the speech before this pause is ended."""
    if pause.asked is None:
        # As in a room: without the end-of-turn model the fixed silence ends speech.
        return window_count(ENDPOINTING.end_silence_s)
    return max(pause.asked.windows, window_count(max(policy.silence_needed_s(pause.asked.evidence), COUNTED_FROM_S)))


async def measure_endpointing(
    recordings: Sequence[SpeechRecording], settings: Settings, progress: Progress
) -> dict[str, Json]:
    """Return the figures of these recordings. Raises `VoiceError` if a model that is needed is missing."""
    observer = await asyncio.to_thread(PauseObserver, settings)
    progress.step("pauses inside speech", total=len(recordings))
    pauses = await asyncio.to_thread(observe_all, recordings, observer, leads=LEADS, on_done=progress.advance)
    return {
        "recordings": len(recordings),
        "passes": len(LEADS),
        "end_of_turn_model": observer.judge.has_turn_model,
        "text_read": observer.judge.reads_text,
        **outcome(pauses).as_json(),
        "operating_points": operating_points(pauses),
    }


def endpointing_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the two targets with their values in `ours`."""
    return (
        at_most(
            "pauses inside speech that are cut",
            "<= 6 %",
            number_at(ours, PART, "cut_share"),
            CUT_SHARE,
            cut_sample(ours, PART),
        ),
        at_most(
            "end of speech known after, P50 ms",
            "<= 500 ms",
            number_at(ours, PART, "end_known_after_ms", "p50"),
            KNOWN_P50_MS,
            sample_at(ours, "ends", PART, "end_known_after_ms", "count"),
        ),
    )
