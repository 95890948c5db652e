"""What one person heard of the bot in a trial: how many answers to each question, and what nobody asked for."""

from __future__ import annotations

import itertools
import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rehearsal.people.received_speech import HeardTalkspurt

# Every answer of the bot is as long as this.
ANSWER_S = 1.2
_EDGE_S = 0.1


@dataclass(frozen=True, slots=True)
class BotHeard:
    """What one person heard of the bot. `answers`: how many to each question. `unasked`: how many before the first
    question, or without one; the bot is set to speak only when somebody calls it. `at_once`: how often a voice session
    was heard before the former one had ended. The local Discord forwards one session of a member, as Discord does, so
    `at_once` tells only that it still does.
    """

    answers: tuple[int, ...]
    unasked: int
    at_once: int


def bot_heard(spurts: Iterable[HeardTalkspurt], asked_at: Sequence[float]) -> BotHeard:
    """Return what somebody heard who asked at these moments, which are in order. All are monotonic seconds.

    Counted is sound and not time: where the machine is too busy to listen, one answer comes in pieces.
    """
    ordered = sorted(spurts, key=lambda spurt: spurt.began_at)
    heard_s = [defaultdict[int, float](float) for _ in range(len(asked_at) + 1)]
    for spurt in ordered:
        heard_s[bisect(asked_at, spurt.began_at)][spurt.ssrc] += spurt.sound_s
    unasked, *answers = (sum(map(_answers_in, by_session.values())) for by_session in heard_s)
    at_once = sum(later.began_at < earlier.ended_at for earlier, later in itertools.pairwise(ordered))
    return BotHeard(tuple(answers), unasked, at_once)


def _answers_in(sound_s: float) -> int:
    """Return how many answers a voice session's sound is; one that was cut counts as one."""
    return max(1, math.ceil((sound_s - _EDGE_S) / ANSWER_S))
