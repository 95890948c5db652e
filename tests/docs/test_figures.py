"""Figures that the pages quote from a benchmark in their sentences are those of its kept file.

The tables between the marks of `benchmarks.document` are compared by tests/benchmarks.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN = "decisions/0018-model-written-summary.md"
RECALL = "decisions/0009-recall-in-the-store.md"
BENCHMARKS = "benchmarks.md"
SMALL = "roomtone, qwen2.5-coder-1.5b"


@cache
def kept(name: str, of: str = "ours") -> Any:
    """Return what a benchmark measured: of Roomtone, or of the `peers` beside it."""
    return json.loads((DOCS / "benchmarks" / f"{name}.json").read_text("utf-8"))[of]


@cache
def text_of(page: str) -> str:
    """Return a page with its lines joined, as one reads it."""
    return re.sub(r"\s+", " ", (DOCS / page).read_text("utf-8"))


def percent(share: float) -> str:
    """Return a share as the pages write it."""
    return f"{share * 100:.0f} %"


def summaries(system: str, file: str = "memory") -> str:
    """Return the row of 0018 about the texts of a system, as it should be."""
    found = kept(file)[system]["written"]
    all_facts, lasting = found["after_folds"], found["lasting"]
    shares = (all_facts["20"]["kept"], lasting["20"]["told"], all_facts["26"]["kept"])
    return f"| {' | '.join(map(percent, shares))} |"


def by_small_model() -> str:
    """Return what the README says of a small model's summary."""
    end = kept("memory-small")[SMALL]["written"]["after_folds"]["26"]
    return f"{percent(end['kept'])} of {end['facts']}"


def after_100_folds(system: str) -> str:
    """Return the row of 0018 about a hundred folds."""
    found = kept("memory")[system]["written, long"]["lasting"]["100"]
    facts, told, rest, of_rest = found["facts"], found["told"], found["rest"], found["found_of_rest"]
    either = (facts - rest + of_rest * rest) / facts
    return f"| {percent(told)} of {facts} | {percent(of_rest)} of {rest} | {percent(either)} |"


def outdated_first(of: str, end: str) -> str:
    """Return how often an outdated value comes first in the search, of one set of evenings, and of how many facts."""
    found = next(
        each for name, each in kept("memory").items() if name.startswith("search: ") and "full text and" in name
    )
    after = found[of]["100"]
    return f"{percent(after['old_value_first'])} of {after['corrected']}{end}"


def outdated_first_plainly() -> str:
    """Return what 0009 says of outdated values in a plain search."""
    after = kept("memory", "peers")["search: plain BM25 over windows"]["held_out"]["100"]
    return f"plain BM25: {percent(after['old_value_first'])};"


def making_a_text(file: str) -> str:
    """Return how long the text takes that is made by code."""
    return f"{kept(file)['reply_path']['rendering']['cpu_ms']['p50']:.1f} ms"


def thirds(of: str) -> str:
    """Return how much the text has of people's summaries, by thirds of the evenings."""
    people = kept("memory")["extractive"][of]["people"]
    first, second, last = (f"{people[f'{each}_third'] * 100:.0f}" for each in ("first", "second", "last"))
    return f"{first}, {second} and {last} % in {of}"


def quarters(room: str, series: str) -> list[list[float]]:
    """Return the samples of the kept hour after its warm-up, in four parts."""
    found = kept("endurance")[room]
    pairs = zip(found["samples"]["at_s"], found["samples"][series], strict=True)
    values = [value for at_s, value in pairs if at_s > found["flat"]["warm_up_s"]]
    assert len(values) == found["flat"]["samples"]
    size = len(values) / 4
    return [values[round(size * part) : round(size * (part + 1))] for part in range(4)]


def listed(values: list[float]) -> str:
    """Return megabytes as a sentence lists them, halves rounded up."""
    told = [f"{int(value + 0.5):,}" for value in values]
    return f"{', '.join(told[:-1])} and {told[-1]} MB"


def misheard(found: Any) -> str:
    """Return the word errors and the CPU time of a recogniser, as the page lists them."""
    alone = found["alone"]
    return f"{alone['word_error_rate'] * 100:.1f} % and {alone['cpu_ms_mean']:,.0f} ms"


def sentences() -> list[tuple[str, str]]:
    """Return pages with what should stand on them."""
    people = kept("memory")["extractive"]
    unasked, growth = kept("unasked")["Roomtone"]["whole turns"], kept("endurance")["live room"]["flat"]
    lowest, highest = growth["memory_mb_an_hour_between"]
    peers = kept("asr", "peers")
    systems = ("roomtone, recorded answers", "recursive, recorded answers", "extractive")
    return [
        *((WRITTEN, summaries(system)) for system in systems),
        *(
            (BENCHMARKS, f"{said} {misheard(peers[name])}")
            for said, name in (
                ("faster-whisper", "faster-whisper"),
                ("its batched pipeline", "faster-whisper, batched"),
                ("whisper.cpp", "whisper.cpp"),
            )
        ),
        (BENCHMARKS, misheard(kept("asr")).replace("and", "of the words and takes").replace(" ms", " ms of CPU")),
        (BENCHMARKS, f"% of the {kept('asr-free-talk')['alone']['words']} words (an"),
        (WRITTEN, summaries(SMALL, "memory-small")),
        (WRITTEN, summaries(SMALL.replace("roomtone", "recursive"), "memory-small")),
        ("../README.md", by_small_model()),
        *((WRITTEN, after_100_folds(system)) for system in systems),
        (WRITTEN, f"made by code has {percent(people['CRD3']['people']['entities_of_summaries'])} after 100 folds"),
        (WRITTEN, f"and {percent(people['QMSum']['people']['entities_of_summaries'])} of 35 meetings"),
        (RECALL, f"for {outdated_first('held_out', ' corrected facts')}"),
        (RECALL, outdated_first_plainly()),
        (RECALL, f"tuned on it is {outdated_first('tuning', '')} ("),
        (WRITTEN, f"by code ({making_a_text('memory')} of"),
        (WRITTEN, thirds("CRD3")),
        (WRITTEN, thirds("QMSum")),
        (BENCHMARKS, listed([median(each) for each in quarters("live room", "memory_mb")])),
        (BENCHMARKS, listed([min(each) for each in quarters("live room", "allocated_mb")])),
        (
            BENCHMARKS,
            f"{growth['samples']} samples tell that memory grew by {growth['memory_mb_an_hour']:.1f} MB an hour",
        ),
        (BENCHMARKS, f"MB an hour ({lowest:.1f} to {highest:.1f}), and what malloc"),
        # Eight evenings and 35 meetings.
        (BENCHMARKS, f"of eight evenings (C2E031 to C2E038) and {unasked['conversations'] - 8} meetings"),
    ]


@pytest.mark.parametrize(("page", "told"), sentences(), ids=lambda each: str(each)[:60])
def test_a_figure_in_a_sentence_is_that_of_the_kept_file(page: str, told: str) -> None:
    """After a benchmark was run anew, the sentences that tell its figures are written anew, too."""
    assert told in text_of(page), f"docs/{page} does not say {told!r}"
