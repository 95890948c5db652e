"""Times, dates, days, figures and names are one value each, however they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.values import Kind, Value, is_hour, same_value, values, without_times


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Quarter to ten now.", "time 9:45"),
        ("It starts at ten to five, don't be late.", "time 4:50"),
        ("half past eight", "time 8:30"),
        ("by eight fifteen", "time 8:15"),
        ("19:30, sharp", "time 7:30"),
        ("7:30pm, not 8", "figure 8, time 7:30"),
        ("at 19.30", "time 7:30"),
        ("we meet at nine on Saturday", "time 9:00, weekday saturday"),
        ("at noon", "time 12:00"),
        ("11 o'clock", "time 11:00"),
        ("the 9th of July", "date 9 july"),
        ("July 9th", "date 9 july"),
        ("on 14 June 2025", "date 14 june, figure 2025"),
        ("the twenty-first of May", "date 21 may"),
        ("by the ninth", "date 9"),
        ("sometime in March", "date march"),
        ("may I march on", ""),
        ("It's on Tuesdays.", "weekday tuesday"),
        ("The gate code is 4,411.", "figure 4411"),
        ("at ten people we stop", "figure 10"),
        ("nine lives left", "figure 9"),
        ("we paid 12.30 euros", "figure 12.30"),
        ("So Olga and Max come.", "name max, name olga"),
    ],
)
def test_values_are_read_with_their_kinds(text: str, found: str) -> None:
    """Values are read with their kinds. A number that is part of a time or a date is not also a figure."""
    assert ", ".join(sorted(f"{value.kind.value} {value.what}" for value in values(text))) == found


def test_dates_are_alike_as_far_as_they_go() -> None:
    """Dates are compared as far as both are given: 'the 9th' may be the 9th of July, but not the 10th."""
    whole, day, month = (Value(Kind.DATE, what) for what in ("9 july", "9", "july"))
    assert same_value(whole, day)
    assert same_value(month, whole)
    assert not same_value(whole, Value(Kind.DATE, "10 july"))
    assert not same_value(Value(Kind.TIME, "9:00"), Value(Kind.TIME, "9:30"))


def test_hours_are_figures_up_to_twelve() -> None:
    """A figure up to twelve may be an hour: 'make that nine' may be a time, but 'make that ninety' cannot."""
    assert is_hour(Value(Kind.FIGURE, "9"))
    assert not is_hour(Value(Kind.FIGURE, "90"))
    assert not is_hour(Value(Kind.NAME, "9"))


@given(st.text(max_size=200))
def test_any_text_has_values_or_none(text: str) -> None:
    """Any text can be read without an error, and a text whose times were removed has no times."""
    assert all(value.what for value in values(text))
    assert not [each for each in values(without_times(text)) if each.kind is Kind.TIME]
