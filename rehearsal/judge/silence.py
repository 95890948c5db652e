"""Judges whether nobody received the bot's voice while a scenario expects silence. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rehearsal.report.report import BotTurnReport
    from rehearsal.script.expectations import ExpectSilent


@dataclass(frozen=True, slots=True)
class SilenceEvidence:
    """What people received of the bot while an `ExpectSilent` wants silence.

    `since_s`, `until_s`: that time, in seconds since the live start; it ends with the run at the latest. `listened`:
    somebody was in the channel for all of it. `voice_s`: when they received the first voiced sound, or None.
    """

    since_s: float
    until_s: float
    listened: bool
    voice_s: float | None = None


def silence_wanted(expected: ExpectSilent, step_times: Mapping[str, tuple[float, float]]) -> tuple[float, float] | None:
    """Return from when to when silence is wanted, in the seconds of `step_times`; None if a step was not reached."""
    if expected.since not in step_times or (expected.until and expected.until not in step_times):
        return None
    until = step_times[expected.until][0] if expected.until else float("inf")
    return step_times[expected.since][1] + expected.within_s, until


def judge_silence(
    expected: ExpectSilent, silence: SilenceEvidence | None, turns: Sequence[BotTurnReport]
) -> tuple[bool, str]:
    """Return whether nobody received the bot's voice in that time, and why. `turns`: the replies that the bot reports.

    `silence`: None if a step was not reached.
    """
    if silence is None:
        return False, "the step was not reached"
    since, until = silence.since_s, silence.until_s
    span = f"{since:.1f} s to " + (f"{until:.1f} s" if expected.until else f"the end at {until:.1f} s")
    if until <= since:
        return False, f"there is no time from {span}"
    if not silence.listened:
        return False, f"nobody was there to hear it from {span}"
    # What the bot says of itself alone would hide a voice of which it does not know.
    spoken = [
        turn
        for turn in turns
        if turn.at_s < until and (turn.at_s if turn.fell_silent_s is None else turn.fell_silent_s) > since
    ]
    reasons = [f'at {turn.at_s:.1f} s: "{turn.text}"' for turn in spoken]
    if silence.voice_s is not None:
        reasons.append(f"its voice was received at {silence.voice_s:.1f} s")
    return not reasons, "; ".join(reasons) or f"silent from {span}"
