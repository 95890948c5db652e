"""`roomtone bench endpoint`: how many pauses inside speech are cut, against how late an end is known, as a curve.

Faster than real time and on the sound's own clock, so the figures are the same on every machine; what the recogniser
and the event loop add is in `roomtone bench reply`. The policy's coefficients were chosen with the shared recordings
and one of the two sets of free talk. The other set decides, and is told apart.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.endpoint.curve import (
    SILENCES_S,
    curve,
    former_rule,
    outcome,
    policy_rule,
    silence_rule,
    without_reading,
    without_text,
)
from benchmarks.endpoint.free_talk import TalkSet, make_free_talk
from benchmarks.endpoint.observed_pauses import PauseObserver, observe_all
from benchmarks.figures import cut_sample, number_at, sample_at
from benchmarks.measuring import Measuring
from benchmarks.reply.recordings import load_recordings
from benchmarks.report import BenchmarkReport, Target, at_most
from benchmarks.stats import percentile
from config.load import load
from rehearsal.script.recordings import MANIFEST
from voice.listening.endpointing import WINDOW_S
from voice.listening.vad import WINDOW_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.endpoint.observed_pauses import ObservedPause
    from benchmarks.endpoint.options import EndpointBenchOptions
    from benchmarks.progress import Progress
    from benchmarks.reply.recordings import SpeechRecording
    from benchmarks.report import Json

SPEECH, TALK_TUNING, TALK_APART = "speech", "free talk for tuning", "free talk kept apart"
JUDGED = (SPEECH, TALK_APART)
# Recordings of people are observed twice, the second time shifted by half a window: where windows begin changes the
# decision for two pauses in seventy.
LEADS = (0, WINDOW_SAMPLES // 2)
# The goals for real speech and for the free talk that was kept apart.
CUT_SHARE, KNOWN_P50_MS = 0.06, 600.0
_PAUSE_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
_NO_TURN_MODEL = "Without the end-of-turn model nothing is known of a pause; `roomtone models pull turn` brings it."


async def run(
    options: EndpointBenchOptions,
    progress: Progress,
    *,
    on_part: Callable[[BenchmarkReport], None] | None = None,
) -> BenchmarkReport:
    """Observe the pauses of each set and work out the curves. `on_part` gets the report so far after each set.

    Raises `ScenarioError` for a folder without a manifest, and the bot's own errors if one of its models is missing.
    """
    settings = load()
    measuring = _Measuring(progress=progress, on_part=on_part)
    measuring.remark_if_busy()
    if options.talk is not None and not all((options.talk / part / MANIFEST).is_file() for part in TalkSet):
        await make_free_talk(options.talk, settings.models, progress)
    observer = await asyncio.to_thread(PauseObserver, settings)
    if not observer.has_turn_model:
        measuring.remark(_NO_TURN_MODEL)
    for name, recordings, leads in _sets(options):
        progress.step(name, total=len(recordings))
        pauses = await asyncio.to_thread(observe_all, recordings, observer, progress, leads=leads)
        measuring.ours[name] = figures(pauses, recordings=len(recordings), passes=len(leads))
        measuring.part_done()
    return measuring.report()


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "endpoint"

    def targets(self) -> tuple[Target, ...]:
        return endpoint_targets(self.ours)


def figures(pauses: Sequence[ObservedPause], *, recordings: int, passes: int) -> dict[str, Json]:
    """Return what is reported of one set: its pauses, the policy, the former rule, and plain silence."""
    lengths = [pause.windows * WINDOW_S for pause in pauses if pause.windows is not None]
    return {
        "recordings": recordings,
        "passes": passes,
        "pause_s": {f"p{share * 100:.0f}": round(percentile(lengths, share), 2) for share in _PAUSE_SHARES}
        if lengths
        else {},
        "pauses_over_1_s": sum(length > 1 for length in lengths),
        "text_read": any(pause.text_end is not None for pause in pauses),
        "policy": outcome(pauses, policy_rule()).as_json(),
        "policy_without_reading": outcome(without_reading(pauses), policy_rule()).as_json(),
        "policy_without_the_text": outcome(without_text(pauses), policy_rule()).as_json(),
        "former_rule": outcome(pauses, former_rule()).as_json(),
        "plain_silence": {f"{seconds:g} s": outcome(pauses, silence_rule(seconds)).as_json() for seconds in SILENCES_S},
        "policy_curve": curve(pauses, policy_rule),
        "former_rule_curve": curve(pauses, former_rule),
    }


def endpoint_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the two goals, each for real speech and beside it for the free talk that was kept apart."""
    cut = (
        at_most(
            f"pauses inside {name} that are cut",
            "<= 6 %",
            _of_policy(ours, name, "cut_share"),
            CUT_SHARE,
            cut_sample(ours, name, "policy"),
        )
        for name in JUDGED
    )
    known = (
        at_most(
            f"end of {name} known after, P50 ms",
            "<= 600 ms",
            _of_policy(ours, name, "end_known_after_ms", "p50"),
            KNOWN_P50_MS,
            sample_at(ours, "ends", name, "policy", "end_known_after_ms", "count"),
        )
        for name in JUDGED
    )
    return (*cut, *known)


def _sets(options: EndpointBenchOptions) -> list[tuple[str, Sequence[SpeechRecording], Sequence[int]]]:
    """Return each set's name, recordings, and passes."""
    speech = load_recordings(options.speech).recordings
    sets: list[tuple[str, Sequence[SpeechRecording], Sequence[int]]] = [(SPEECH, _first(speech, options), LEADS)]
    if options.talk is not None:
        for name, part in ((TALK_TUNING, TalkSet.TUNING), (TALK_APART, TalkSet.JUDGING)):
            talk = load_recordings(options.talk / part).recordings
            sets.append((name, _first(talk, options), LEADS[:1]))
    return sets


def _first(recordings: Sequence[SpeechRecording], options: EndpointBenchOptions) -> Sequence[SpeechRecording]:
    return recordings[: options.recordings] if options.recordings else recordings


def _of_policy(ours: Mapping[str, Json], *path: str) -> float | None:
    return number_at(ours, path[0], "policy", *path[1:])
