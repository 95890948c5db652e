"""Which days, months and years people mean by their words, and where a text tells them."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.summary.dates import Period, date_spans, is_short_for, periods_meant

# A Thursday.
TODAY = date(2026, 11, 26)
PIECES = [
    *("last", "next", "in", "ago", "vor", "two", "3", "3rd", "31.", "month", "weeks", "Jahr", "weekend", "May"),
    *("day", "after", "tomorrow", "summer", "of", "Winter"),
    *("2025", "28", "November", "2025/26", "-", ",", "."),
]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("I was there two months ago.", {Period(2026, 9)}),
        ("Vor einem Jahr war ich da.", {Period(2025)}),
        ("In 3 weeks, then.", {Period(2026, 12, 17)}),
        ("Übermorgen fahre ich.", {Period(2026, 11, 28)}),
        ("The day before yesterday.", {Period(2026, 11, 24)}),
        ("Tomorrow or the day after tomorrow?", {Period(2026, 11, 27), Period(2026, 11, 28)}),
        ("Gestern war ich da.", {Period(2026, 11, 25)}),
        ("Next month we move.", {Period(2026, 12)}),
        ("Letztes Jahr im Mai.", {Period(2025), Period(2025, 5), Period(2026, 5), Period(2027, 5)}),
        ("In June, I think.", {Period(2026, 6), Period(2027, 6)}),
        ("It is due on the 3rd.", {Period(2026, 11, 3), Period(2026, 12, 3)}),
        ("Am 31. habe ich frei.", {Period(2026, 10, 31), Period(2026, 12, 31)}),
        ("In the summer of next year.", {Period(2027), *(Period(year, season="summer") for year in (2026, 2027))}),
        ("Next spring, then.", {Period(2027, season="spring")}),
        ("Letzten Herbst war ich da.", {Period(2025, season="autumn"), Period(2026, season="autumn")}),
        # A winter is told by both its years. Without 'next' or 'last' it is none that is certain.
        ("Next winter we ski.", {Period(2026, season="winter", until=2027)}),
        ("Letzten Winter war es kalt.", {Period(2025, season="winter", until=2026)}),
        ("In the winter we ski.", set()),
        # Which day of a week is open; which months it is in is not.
        ("We were there last week.", {Period(2026, 11)}),
        # No day, month or year.
        ("I stayed three days in Rome.", set()),
        ("I have not been there in years.", set()),
        ("Vor Jahren war ich da.", set()),
        ("Morgens trinke ich Tee.", set()),
        ("Two weeks is too long.", set()),
        ("We came third, and may go again.", set()),
        ("", set()),
    ],
)
def test_words_mean_the_periods_that_follow_from_the_day(said: str, meant: set[Period]) -> None:
    """A unit of time with a count and a direction, a month, and a day of a month mean a period or two."""
    assert periods_meant(said, TODAY) == meant


def test_a_weekend_means_its_days_where_a_text_tells_a_weekend() -> None:
    """Nobody said whether it is the Saturday or the Sunday."""
    meant = periods_meant("I was ill at the weekend.", TODAY)
    assert {each.day for each in meant} == {21, 22, 28, 29}
    assert date_spans("Ada was ill on the weekend of 21-22 November.", meant)
    assert not date_spans("Ada was ill on Saturday, 21 November.", meant)


@pytest.mark.parametrize(
    ("today", "last", "coming"),
    [
        (date(2026, 2, 28), 2024, 2026),
        (date(2026, 3, 1), 2025, 2026),
        (date(2026, 11, 30), 2025, 2026),
        (date(2026, 12, 1), 2025, 2027),
        (date(2027, 1, 31), 2025, 2027),
    ],
)
def test_the_winter_of_the_day_is_neither_the_last_nor_the_next(today: date, last: int, coming: int) -> None:
    """'Last winter' is over, and 'next winter' has not begun."""
    for said, year in (("Last winter.", last), ("Next winter.", coming)):
        assert periods_meant(said, today) == {Period(year, season="winter", until=year + 1)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("It is on Saturday, 28 November 2026.", "28 November 2026"),
        ("It is on 28 Nov.", "28 Nov"),
        ("It is on November 28.", "November 28"),
        ("It is on the 28th of November.", "28th November"),
        # Another day, month or year.
        ("It is on 28 or 29 November.", "28 November"),
        ("It is on 27 November.", ""),
        ("It is on 28 October.", ""),
        ("It is on 28 November 2027.", ""),
        ("It was in 2025, on 3 March 2025.", "2025"),
        ("It costs 2025 euros, in 2024.", ""),
        ("It was in March 2025.", ""),
        ("It was in summer 2024.", "summer 2024"),
        ("It was in the summer of 2024.", "summer 2024"),
        ("It was in summer 2025.", ""),
        ("It was in autumn 2024.", ""),
        ("It cost this summer 2024 euros.", ""),
        ("It is in winter 2027/28.", "2027/28"),
        ("It is in the winter of 2027-2028.", "2027-2028"),
        ("It is in winter 2026/27.", ""),
        ("It is in winter 2027/29.", ""),
        ("It is in summer 2027/28.", ""),
        ("It is in winter 2027.", ""),
    ],
)
def test_only_what_is_meant_of_a_date_is_found(text: str, told: str) -> None:
    """A part of a date that nobody meant is not covered by the others."""
    winter = Period(2027, season="winter", until=2028)
    spans = date_spans(text, {Period(2026, 11, 28), Period(2025), Period(2024, season="summer"), winter})
    assert " ".join(text[begin:end] for begin, end in spans) == told


@pytest.mark.parametrize(
    ("name", "sentence", "is_short"),
    [
        ("wed", "They meet on Wed, 7 May.", True),
        ("wed", "They meet Wed.", False),
        ("sept", "They meet on 3 Sept.", True),
        ("sept", "They meet with Sept.", False),
        ("tue", "They meet on Tue 7 May.", False),
        ("we", "They meet on We 7.", False),
    ],
)
def test_an_abbreviation_is_short_for_what_was_said(name: str, sentence: str, *, is_short: bool) -> None:
    """It is told from a person by the number beside it."""
    assert is_short_for(name, {"wednesday", "september", "7"}, sentence) is is_short


@given(
    st.lists(
        st.sampled_from(PIECES) | st.text(max_size=4),
        max_size=12,
    ).map(" ".join),
    st.dates(min_value=date(1990, 1, 1), max_value=date(2100, 1, 1)),
)
def test_any_words_are_read(text: str, today: date) -> None:
    """Whatever is said and told, nothing is raised, and what is found are words of the text in order."""
    spans = date_spans(text, periods_meant(text, today))
    assert spans == sorted(set(spans))
    assert all(0 <= begin < end <= len(text) for begin, end in spans)
