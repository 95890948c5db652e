"""Measure what telling who is addressed costs in a crowd, in processor time of the event loop's thread.

The crowds are invented: names of ordinary words, and names made to resemble the words of a text of 400 words, without
and with pauses between these, at which a name may be called. Every text is new, as what people say is, so nothing is
remembered from the one before.
"""

from __future__ import annotations

import time
from itertools import islice, permutations
from random import Random
from typing import TYPE_CHECKING

from benchmarks.stats import percentile
from bot.brain.addressing import call_names
from bot.brain.decider import HeardText, Situation, decide
from bot.brain.settings import BrainSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Json

TEXTS = 100
NAME_CHARS = 32
_TALK = (
    "so when we went to the market yesterday I told them that the lantern was not in the box and nobody could say who "
    "had taken it because all of us were out in the rain at that time and then the dog came"
)
_LETTERS = "abcdefghijklmnoprstuw"


def measure_crowd() -> dict[str, Json]:
    """Return the processor time of a decision, by crowd, and the greatest P95 of all."""
    random = Random(1)  # noqa: S311 - nothing secret about a name
    scrambled = ["".join(letters) for letters in islice(permutations("ramonite"), 0, 40_000, 100)]
    syllables = ["".join(random.choice(_LETTERS) for _ in range(6)) for _ in range(400)]
    talk = _TALK.split()
    crowds = {
        "25 people, names of ordinary words, 110 words": (_names(random, talk, 4, 25), _text(random, talk, 110)),
        "99 people, names of ordinary words, 110 words": (_names(random, talk, 4, 99), _text(random, talk, 110)),
        "99 people, long names of ordinary words, 400 words": (_names(random, talk, 7, 99), _text(random, talk, 400)),
        "99 people, names of single letters, 400 words": (
            _names(random, list("abcdefgh"), 16, 99),
            _text(random, list("abcdefgh"), 400),
        ),
        "99 people, names of the text's words, 400 different words": (
            _names(random, syllables, 5, 99),
            " ".join(syllables),
        ),
        "99 people, names of the same letters, 400 different words": (
            _names(random, scrambled, 4, 99),
            " ".join(scrambled),
        ),
        "99 people, names of the text's words, a pause after each of 400 words": (
            _names(random, syllables, 5, 99),
            ", ".join(syllables),
        ),
        "99 people, names of the same letters, a pause after each of 400 words": (
            _names(random, scrambled, 4, 99),
            ", ".join(scrambled),
        ),
    }
    times = {label: _times_ms(names, text) for label, (names, text) in crowds.items()}
    figures: dict[str, Json] = {
        label: {"p50": round(percentile(each, 0.5), 2), "p95": round(percentile(each, 0.95), 2)}
        for label, each in times.items()
    }
    worst = max(percentile(each, 0.95) for each in times.values())
    return {"cpu_ms": figures, "worst_p95_ms": round(worst, 2)}


def _names(random: Random, words: Sequence[str], of: int, people: int) -> list[str]:
    return [" ".join(random.choice(words) for _ in range(of))[:NAME_CHARS] for _ in range(people)]


def _text(random: Random, words: Sequence[str], length: int) -> str:
    return " ".join(random.choice(words) for _ in range(length))


def _times_ms(names: Sequence[str], text: str) -> list[float]:
    """Return the processor time of each decision in milliseconds."""
    situation = Situation(
        people=len(names) + 1,
        wake_names=BrainSettings().wake_names,
        other_names=frozenset().union(*map(call_names, names)),
    )
    times = []
    for number in range(TEXTS):
        heard = HeardText(f"{text} {number}")
        begun = time.thread_time()
        decide(heard, situation)
        times.append(1_000 * (time.thread_time() - begun))
    return times
