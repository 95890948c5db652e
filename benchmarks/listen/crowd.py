"""Measures what it costs to tell who is addressed in a crowd, in processor time of the event loop's thread.

The names are made to be found in the text as often as possible. Every text is new, as what people say is, so nothing is
remembered from the one before.
"""

from __future__ import annotations

import time
from itertools import islice, permutations
from random import Random
from typing import TYPE_CHECKING

from benchmarks.stats import percentile
from bot.brain.decider import Situation, decide
from bot.brain.settings import BrainSettings
from bot.brain.wakeword import call_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Json

TEXTS = 100
PEOPLE = 99
WORDS = 400
_NAME_CHARS = 32


def measure_crowd() -> dict[str, Json]:
    """Return the processor time of a decision, by crowd, and the greatest P95 of all."""
    random = Random(1)  # noqa: S311 - nothing secret about a name
    letters = [random.choice("abcdefgh") for _ in range(WORDS)]
    # All of them have the letters of one word, and it begins as the bot's name does.
    scrambled = ["r" + "".join(each) for each in islice(permutations("omontie"), 0, 12 * WORDS, 12)]
    times = {
        "names and text of single letters": _times_ms(random, letters, " "),
        "names and text of words with the same letters": _times_ms(random, scrambled, " "),
        "the same with a pause after each word": _times_ms(random, scrambled, ", "),
    }
    p95s = {label: round(percentile(each, 0.95), 2) for label, each in times.items()}
    figures: dict[str, Json] = {"decisions": TEXTS * len(p95s), "worst_p95_ms": max(p95s.values())}
    return figures | {f"p95_ms, {label}": value for label, value in p95s.items()}


def _times_ms(random: Random, words: Sequence[str], between: str) -> list[float]:
    """Return the processor time of each decision in milliseconds."""
    names = [" ".join(random.choices(words, k=16))[:_NAME_CHARS] for _ in range(PEOPLE)]
    situation = Situation(
        people=PEOPLE + 1,
        wake_names=BrainSettings().names,
        other_names=frozenset().union(*map(call_names, names)),
    )
    times = []
    for number in range(TEXTS):
        heard = f"{between.join(words)} {number}"
        begun = time.thread_time()
        decide(heard, situation)
        times.append(1_000 * (time.thread_time() - begun))
    return times
