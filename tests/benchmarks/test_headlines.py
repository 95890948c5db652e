"""The README's figures are those of the result files, and figures that were not measured are left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from benchmarks.document import kept_results
from benchmarks.headlines import ANSWERED, HEADLINES, headlines

if TYPE_CHECKING:
    from benchmarks.report import Json

# Fewer say little: of 24 cases one is four percent.
LEAST_CASES = 50


def test_each_figure_is_written_for_people() -> None:
    """A target is written in its own words and with its sample, and a system by the name that people know."""
    reply: dict[str, Json] = {
        "targets": [
            {"name": HEADLINES[0].target, "goal": "", "value": 782.8, "met": True, "sample": "24 recordings"},
            {"name": HEADLINES[2].target, "goal": "", "value": 118.1, "met": True, "sample": ""},
        ],
        "ours": {"interruptions": {"interruptions": 9, "silent_after_ms": {"count": 8}}},
    }
    memory: dict[str, Json] = {
        "ours": {"roomtone, recorded answers": {"written": {"after_folds": {"26": {"kept": 0.875, "facts": 8}}}}},
        "peers": {
            "pipecat, recorded answers": {"written": {"after_folds": {"24": {"kept": 0.125, "facts": 8}}}},
            "langchain, recorded answers": {},
        },
        "targets": [{"name": "memory search over 100,000 turns, P95 ms", "value": None}],
    }
    page = "\n".join(headlines({"reply.json": reply, "memory.json": memory}))
    assert f"| {HEADLINES[0].words} | 783 ms | 24 recordings |" in page
    assert f"| {HEADLINES[2].words} | 118 ms | 8 interruptions |" in page
    assert "| Roomtone | 88% of 8 |\n| Pipecat's context summarisation | 12% of 8 |" in page
    assert "LangChain" not in page
    assert "100,000" not in page


def test_recorded_answers_are_shown_where_they_were_measured() -> None:
    """They are the same for all. Each conversation counts at its own end."""
    written: dict[str, Json] = {
        "after_folds": {
            "20": {"kept": 0.5, "facts": 48},
            "22": {"kept": 0.75, "facts": 20},
            "26": {"kept": 1.0, "facts": 30},
        },
    }
    long: dict[str, Json] = {"lasting": {"100": {"facts": 57, "told": 0.8, "rest": 8, "found_of_rest": 0.75}}}
    report: dict[str, Json] = {
        "ours": {"roomtone, recorded answers": {"written": written, "written, long": long}},
        "peers": {},
    }
    page = "\n".join(headlines({"memory.json": report}))
    assert "a strong model's answers" in page
    assert "| Roomtone | 90% of 50 |" in page
    assert "among ten search results | 95% of 57 |" in page


def test_the_kept_results_have_all_of_them() -> None:
    """The kept results have every headline and its sample. A renamed target would silently leave the README."""
    lines = headlines(kept_results())
    page = "\n".join(lines)
    rows = [line.split(" | ") for line in lines if any(f"| {head.words} |" in line for head in HEADLINES)]
    assert len(rows) == len(HEADLINES)
    assert all(row[2].strip(" |") for row in rows)
    assert all(name in page for name in ANSWERED.values())


def test_no_share_of_facts_has_few_cases() -> None:
    """Each share of the second table has its number of facts."""
    facts = [int(count) for count in re.findall(r"\| \d+% of (\d+) \|", "\n".join(headlines(kept_results())))]
    assert len(facts) > len(ANSWERED)
    assert min(facts) >= LEAST_CASES
