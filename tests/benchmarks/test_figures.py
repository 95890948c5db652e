"""A number is read out of nested figures, or None if it was not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.figures import number_at

if TYPE_CHECKING:
    from benchmarks.report import Json

FIGURES: dict[str, Json] = {"answers": {"total_ms": {"p50": 480}, "who": "Ada", "whole": True}}


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
