"""Figures are told with three digits, and what was not measured is told so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.markdown import cell, share, table, target_row

if TYPE_CHECKING:
    from benchmarks.report import Json


@pytest.mark.parametrize(
    ("figure", "told"),
    [(None, "-"), (12, "12"), ("<= 3", "<= 3"), (0.04567, "0.0457"), (2.25, "2.25"), (123_456.7, "123,457")],
)
def test_a_figure_has_three_digits(figure: Json, told: str) -> None:
    """It is never written with an exponent."""
    assert cell(figure) == told


def test_a_share_is_in_percent() -> None:
    """One that was not measured is a hyphen."""
    assert (share(0.456), share(None)) == ("46%", "-")


def test_a_table_has_a_head_and_ends_with_an_empty_line() -> None:
    """So that the next paragraph is none of its rows."""
    row = target_row({"name": "time", "goal": "<= 1", "value": 4.0, "met": False})
    assert list(table(("target", "goal", "measured", ""), [row])) == [
        "| target | goal | measured |  |",
        "|---|---|---|---|",
        "| time | <= 1 | 4 | **not met** |",
        "",
    ]
