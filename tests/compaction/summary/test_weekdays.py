"""Whether a weekday beside a date is the date's own."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.summary.sources import sources_of, unfounded
from compaction.summary.weekdays import weekdays_beside_dates

# A Monday.
TODAY = date(2026, 5, 4)
PIECES = ["Friday", "Thu", "Donnerstag", "the", "den", "7th", "7.", "31", "3-5", "to", "May", "Juli", "2026", "(Thu)"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("On Thursday, 7 May, we go.", [("thursday", (7,), 5, 0)]),
        ("On Thursday the 7th of May we go.", [("thursday", (7,), 5, 0)]),
        ("On Thursday, May 7, 2026, we go.", [("thursday", (7,), 5, 2026)]),
        ("On Thu 7 May we go.", [("thu", (7,), 5, 0)]),
        ("On 7 May (Thursday) we go.", [("thursday", (7,), 5, 0)]),
        ("Am Donnerstag, dem 7. Mai 2026, gehen wir.", [("donnerstag", (7,), 5, 2026)]),
        ("From Friday to Sunday, 3 to 5 July.", [("friday", (3, 5), 7, 0), ("sunday", (3, 5), 7, 0)]),
        ("From Friday, 3 July, to Saturday, 4 July.", [("friday", (3,), 7, 0), ("saturday", (4,), 7, 0)]),
        # No weekday beside a date.
        ("Every Friday at 7 from May on.", []),
        ("On Friday, May gave 7.", []),
        ("On Friday at 8, 3 July.", []),
        ("On the 7th of May.", []),
        ("", []),
    ],
)
def test_a_weekday_beside_a_date_is_read(text: str, found: list[tuple[str, tuple[int, ...], int, int]]) -> None:
    """The ways in which people write a weekday with a date are known, and nothing else is taken for one."""
    assert [(each.word, each.days, each.month, each.year) for each in weekdays_beside_dates(text)] == found


@pytest.mark.parametrize(
    ("today", "text", "agrees"),
    [
        (TODAY, "Thursday, 7 May", True),
        (TODAY, "Wednesday, 7 May", False),
        # Of another year only where that is told.
        (TODAY, "Friday, 7 May", False),
        (TODAY, "Friday, 7 May 2027", True),
        # The last 7 May and the next are as near.
        (date(2026, 11, 26), "Thursday, 7 May", True),
        (date(2026, 11, 26), "Friday, 7 May", True),
        (date(2026, 11, 26), "Wednesday, 7 May", False),
        # The next is nearer by far.
        (date(2026, 12, 20), "Wednesday, 6 January", True),
        (date(2026, 12, 20), "Tuesday, 6 January", False),
        # Planned for the autumn of the year that has begun.
        (date(2026, 1, 1), "Friday, 9 October", True),
        # One of several days.
        (TODAY, "Sunday, 3-5 July", True),
        (TODAY, "Monday, 3-5 July", False),
        # No day of the calendar.
        (TODAY, "Monday, 31 June", False),
    ],
)
def test_a_weekday_is_compared_with_the_calendar(today: date, text: str, *, agrees: bool) -> None:
    """A date without a year is less than nine months ago or eleven months ahead."""
    assert [each.agrees(today) for each in weekdays_beside_dates(text)] == [agrees]


@pytest.mark.parametrize(
    ("said", "text", "lacking"),
    [
        ("It is on 7 May.", "It is on Thursday, 7 May.", set()),
        ("It is on 7 May.", "It is on Wednesday, 7 May.", {"wednesday"}),
        # The weekday of a date that nobody said.
        ("It is on 7 May.", "It is on Saturday, 9 May.", {"9"}),
        # Nobody named that year.
        ("It is on 7 May.", "It is on Friday, 7 May 2027.", {"friday", "2027"}),
        ("It is on 7 May 2027.", "It is on Friday, 7 May 2027.", set()),
        # Somebody spoke of each of them alone.
        ("Ada comes on Friday, and Bob on 7 May.", "Bob comes on Friday, 7 May.", {"friday"}),
        ("Ada comes on Friday, and Bob on 7 May.", "They come on Friday and on 7 May.", set()),
        # What was said is no invention, whatever the calendar has.
        ("In the story it is Sunday, 7 May.", "In the story it is Sunday, 7 May.", set()),
        # What may belong to another date.
        ("It is from Friday to Sunday, from 3 to 5 July.", "It is from Friday to Sunday, 3 July to 5 July.", set()),
    ],
)
def test_a_weekday_of_the_calendar_needs_no_source(said: str, text: str, lacking: set[str]) -> None:
    """It needs one where the date has another weekday, and then only of that date."""
    assert unfounded(text, sources_of([said], ["Ada", "Bob"], today=TODAY)) == lacking


def test_without_a_day_no_weekday_is_compared() -> None:
    """Whether a text tells a fact is asked of texts that have no day."""
    said = sources_of(["It is on Friday, and on 7 May."], ["Ada"])
    assert not unfounded("It is on Friday, 7 May.", said)
    assert unfounded("It is on Thursday, 7 May.", said) == {"thursday"}


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join), st.dates(date(1990, 1, 1)))
def test_any_words_are_read(text: str, today: date) -> None:
    """Whatever is told, nothing is raised, and what is found is a word of the text."""
    for each in weekdays_beside_dates(text):
        assert text[slice(*each.span)].casefold() == each.word
        assert each.agrees(today) in {True, False}
