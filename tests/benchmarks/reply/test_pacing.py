"""The figures of the pacing benchmark with many rooms."""

from __future__ import annotations

import pytest

from benchmarks.reply.pacing import PacingFigures, Steadiness, counts_up_to, growth_mb


def step(rooms: int, rss_mb: float) -> Steadiness:
    return Steadiness(rooms, 100, 100, 0.1, 0.2, 0.3, 0.4, 0.3, rss_mb, 10, 0.5)


def test_rooms_become_more_in_usual_steps() -> None:
    assert counts_up_to(10) == [1, 2, 5, 10]
    assert counts_up_to(7) == [1, 2, 5, 7]
    assert counts_up_to(1) == [1]


def test_the_growth_is_what_each_further_room_took() -> None:
    assert growth_mb([step(1, 300.0), step(2, 402.0), step(5, 408.0), step(10, 418.0)]) == pytest.approx(2.0)
    assert growth_mb([step(1, 300.0)]) is None


def test_figures_are_told_by_the_number_of_rooms() -> None:
    steps = (step(1, 300.0), step(2, 302.0))
    told = PacingFigures(steps, quiet=steps[1], memory_a_room_mb=2.0).as_json()
    assert isinstance(told["rooms"], dict)
    assert list(told["rooms"]) == ["1", "2"]
    assert told["memory_a_room_mb"] == 2.0
