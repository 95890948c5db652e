"""What a rule for ending speech does to observed pauses: how many it cuts, and how late the ends are known. Pure.

A rule says after how many silent windows a pause ends the speech. The outcome of any rule can be worked out from the
same observations, because nothing in them depends on a decision. Pauses under `COUNTED_FROM_S` are not observed, so no
rule may end speech in them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.reply.pause_judge import COUNTED_FROM_S
from benchmarks.reply.spread import spread
from benchmarks.stats import share_of
from voice.listening.end_policy import END_POLICY, EndPolicy
from voice.listening.endpointing import ENDPOINTING, WINDOW_S, window_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.endpoint.observed_pauses import ObservedPause
    from benchmarks.report import Json

Rule: TypeAlias = "Callable[[ObservedPause], int]"

# The curve multiplies the silences of the policy and of the former rule by these.
SCALES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5)
SILENCES_S = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4)
# Decision 0011's first rule: 0.5 s for who sounds finished with more than this probability, 1.0 s for others.
FORMER_FINISHED, FORMER_SHORT_S, FORMER_LONG_S = 0.94, 0.5, 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rule does. `known_after_s`: of each end, from the end of the voice."""

    inside: int
    cut: int
    known_after_s: tuple[float, ...]

    @property
    def cut_share(self) -> float | None:
        return share_of(self.cut, self.inside)

    @property
    def mean_s(self) -> float:
        return sum(self.known_after_s) / len(self.known_after_s) if self.known_after_s else 0.0

    def as_json(self) -> dict[str, Json]:
        return {
            "pauses_inside": self.inside,
            "cut": self.cut,
            "cut_share": self.cut_share,
            "end_known_after_ms": spread([seconds * 1000 for seconds in self.known_after_s]),
            "end_known_after_mean_ms": round(self.mean_s * 1000, 1),
        }


def outcome(pauses: Sequence[ObservedPause], rule: Rule) -> Outcome:
    """Return what `rule` does to these pauses."""
    inside = [pause for pause in pauses if pause.windows is not None]
    return Outcome(
        len(inside),
        sum(rule(pause) <= (pause.windows or 0) for pause in inside),
        tuple(pause.known_after_s(rule(pause)) for pause in pauses if pause.is_end),
    )


def silence_rule(seconds: float) -> Rule:
    """Return the rule that so much silence ends every speech."""
    windows = window_count(max(seconds, COUNTED_FROM_S))
    return lambda _: windows


def former_rule(scale: float = 1.0) -> Rule:
    """Return the rule of the end-of-turn model alone, with its silences multiplied by `scale`."""

    def windows(pause: ObservedPause) -> int:
        sounds_finished = (pause.finished or 0.0) > FORMER_FINISHED
        return window_count(max((FORMER_SHORT_S if sounds_finished else FORMER_LONG_S) * scale, COUNTED_FROM_S))

    return windows


def policy_rule(scale: float = 1.0, policy: EndPolicy = END_POLICY) -> Rule:
    """Return the room's rule, with its silences multiplied by `scale`."""

    def windows(pause: ObservedPause) -> int:
        # As in a room: without the end-of-turn model the fixed silence ends speech.
        known = pause.evidence
        needed_s = ENDPOINTING.end_silence_s if known is None else policy.silence_needed_s(known)
        return window_count(max(needed_s * scale, COUNTED_FROM_S))

    return windows


def without_text(pauses: Sequence[ObservedPause]) -> list[ObservedPause]:
    """Return the pauses as they are for a recogniser that does not say how sure it is."""
    return [replace(pause, sentence_end=None, text_end=None) for pause in pauses]


def without_reading(pauses: Sequence[ObservedPause]) -> list[ObservedPause]:
    """Return the pauses as they are where no language model reads the text."""
    return [replace(pause, text_end=None) for pause in pauses]


def plain_silence_cuts(pauses: Sequence[ObservedPause], mean_s: float) -> float | None:
    """Return the share of pauses that plain silence cuts with the same mean delay, interpolated between windows."""
    before: Outcome | None = None
    for windows in range(window_count(COUNTED_FROM_S), 80):
        now = outcome(pauses, silence_rule(windows * WINDOW_S))
        if now.mean_s >= mean_s:
            if before is None or before.cut_share is None or now.cut_share is None:
                return now.cut_share
            part = (mean_s - before.mean_s) / (now.mean_s - before.mean_s)
            return round(before.cut_share + part * (now.cut_share - before.cut_share), 4)
        before = now
    return None


def curve(pauses: Sequence[ObservedPause], rule: Callable[[float], Rule]) -> list[Json]:
    """Return the outcome of `rule` for each of `SCALES`, with plain silence at the same mean delay beside it."""
    points: list[Json] = []
    for scale in SCALES:
        done = outcome(pauses, rule(scale))
        points.append(
            {
                "scale": scale,
                **done.as_json(),
                "plain_silence_cut_share": plain_silence_cuts(pauses, done.mean_s),
            }
        )
    return points
