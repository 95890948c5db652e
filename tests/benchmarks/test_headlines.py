"""The README's figures are those of the result files, each with its goal and enough cases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from benchmarks.document import kept_results
from benchmarks.headlines import HEADLINES, headlines

if TYPE_CHECKING:
    from benchmarks.report import Json

# Fewer say little: of 24 cases one is four percent.
LEAST_CASES = 50


def test_a_figure_that_was_not_measured_has_no_row() -> None:
    target: Json = {"name": HEADLINES[0].target, "goal": "<= 1 s", "value": 782.8, "sample": "60 recordings"}
    unknown: Json = {"name": HEADLINES[1].target, "goal": "<= 2 s", "value": None, "sample": ""}
    rows = headlines({"reply.json": {"targets": [target, unknown]}})[2:-1]
    assert rows == [f"| {HEADLINES[0].words} | 783 ms | <= 1 s | 60 recordings |"]


def test_the_kept_results_have_all_of_them_with_enough_cases() -> None:
    """A renamed target would silently leave the README."""
    rows = headlines(kept_results())[2:-1]
    assert len(rows) == len(HEADLINES)
    for row in rows:
        found = re.match(r"[\d,]+", row.rsplit(" | ", 1)[1])
        assert found, row
        assert int(found[0].replace(",", "")) >= LEAST_CASES
