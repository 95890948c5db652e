"""A number is read out of nested figures, or None if it was not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.figures import counted_of, cut_sample, entry_of, number_at, sample_at

if TYPE_CHECKING:
    from benchmarks.report import Json

FIGURES: dict[str, Json] = {"answers": {"total_ms": {"p50": 480}, "who": "Ada", "whole": True}}


def test_an_entry_is_read_out_of_figures() -> None:
    """What is none, or is in none, is an empty one."""
    assert entry_of(entry_of(FIGURES, "answers"), "total_ms") == {"p50": 480}
    assert entry_of(FIGURES, "questions") == entry_of("Ada", "who") == entry_of(FIGURES["answers"], "who") == {}


@pytest.mark.parametrize(
    ("path", "number"),
    [
        (("answers", "total_ms", "p50"), 480.0),
        (("answers", "total_ms", "p95"), None),
        (("answers", "total_ms"), None),
        (("answers", "who"), None),
        (("answers", "who", "p50"), None),
        (("answers", "whole"), None),
        ((), None),
    ],
)
def test_a_number_or_none(path: tuple[str, ...], number: float | None) -> None:
    assert number_at(FIGURES, *path) == number


def test_a_sample_says_what_was_counted() -> None:
    """What was not counted has no sample."""
    counted: dict[str, Json] = {"link": {"sent": 30_500}, "pauses": {"cut": 10, "pauses_inside": 146}}
    assert sample_at(counted, "frames", "link", "sent") == "30,500 frames"
    assert cut_sample(counted, "pauses") == "10 of 146 pauses"
    assert (
        sample_at({"speakers": {"utterances": 24}}, "utterances", "speakers", "utterances") == "seen in 24 utterances"
    )
    assert counted_of({"said": 8}, "answers", ("said",), 1) == "seen in 7 of 8 answers"
    assert sample_at(counted, "frames", "link", "lost") == cut_sample(counted, "link") == ""
