"""Tests which dates follow from the day of a talk: 'tomorrow', and a weekday where it can mean only one day."""

from __future__ import annotations

from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from compaction.language.languages import LANGUAGES
from compaction.summary.day import format_day, sayings_of_day
from compaction.summary.sources import sources_of, unfounded
from tests.compaction.turn_store_contract import T0, turn

_DAY_S = 86_400.0
TODAY = "Thursday, 9 October 2025; tomorrow is Friday, 10 October"

# What is said on Thursday, 9 October 2025, and which days are told beside today and tomorrow.
TOLD = [
    ("See you at nine.", ""),
    ("Let's meet on Monday at nine.", "; the coming Monday is 13 October"),
    ("Wednesday or Sunday?", "; the coming Sunday is 12 October; the coming Wednesday is 15 October"),
    ("I can't on Tuesday, Ada.", "; the coming Tuesday is 14 October"),
    ("Wir treffen uns am Montag um acht.", "; the coming Monday is 13 October"),
    ("Bis Sonntag!", "; the coming Sunday is 12 October"),
    # Tomorrow is told already.
    ("On Friday, then.", ""),
    # Today or in a week.
    ("Thursday works for me.", ""),
    # Another week, and no single day.
    ("Not this one, next Monday.", ""),
    ("I saw her last Tuesday.", ""),
    ("On Mondays I swim.", ""),
    ("Ich habe montags Chor.", ""),
    ("Nächsten Montag vielleicht.", ""),
    # Written apart.
    # Not seen: words of another week ('next') are not told from other ones ('said') without a list of them.
    pytest.param(
        "We said Saturday, not Sunday.",
        "; the coming Saturday is 11 October",
        marks=pytest.mark.xfail(strict=True, reason="a word with a meaning may tell of another week"),
    ),
    ("The van is ready by Saturday.", "; the coming Saturday is 11 October"),
    ("Geht es auch am Dienstag?", "; the coming Tuesday is 14 October"),
    ("It was a sunny day.", ""),
    ("Letzten Samstag war ich krank.", ""),
]

# What a model writes of 'Let's meet on Monday, not tomorrow.', and whether each number in it has a source.
WRITTEN = [
    ("They meet on Monday, 13 October.", True),
    ("They meet on 13 October, not on 10 October.", True),
    ("Sie treffen sich am Montag, 13. Oktober.", True),
    ("They talked on 9 October 2025.", True),
    ("They meet on Monday, 20 October.", False),
    ("They meet on Saturday, 11 October.", False),
    ("They meet on Monday, 13 November.", False),
    ("They meet on 13 October at 7.", False),
]


# What a model writes of what is said on Thursday, 9 October 2025: it reads which week is meant, and code does not.
READ = [
    ("Since the blood test, on Monday.", "Ines had the blood test on Monday, 6 October.", True),
    ("Since the blood test, on Monday.", "Ines had the blood test on 6 October.", True),
    ("I saw her last Tuesday.", "Ines saw her on Tuesday, 7 October.", True),
    ("Letzten Samstag war ich krank.", "Ines war am Samstag, 4. Oktober, krank.", True),
    ("I bring the car in on Thursday.", "The car goes to the garage on Thursday, 16 October.", True),
    ("I bring the car in on Thursday.", "Ines brought the car in on Thursday, 2 October.", True),
    ("She called yesterday.", "She called on 8 October.", True),
    ("Gestern rief sie an.", "Sie rief am Mittwoch, 8. Oktober an.", True),
    ("Not this one, next Monday.", "Ines comes on Monday, 13 October.", True),
    # Two weeks away, another weekday, no weekday at all.
    ("Since the blood test, on Monday.", "Ines had the blood test on 29 September.", False),
    ("Since the blood test, on Monday.", "Ines had the blood test on 7 October.", False),
    ("I saw her last Tuesday.", "Ines saw her on 1 October.", False),
    ("She called in the morning.", "She called on 6 October.", False),
    ("She called in the morning.", "She called on Saturday, 11 October.", False),
    ("It was a sunny day.", "It was sunny on 5 October.", False),
    ("Letzten Samstag war ich krank.", "Ines war am 3. Oktober krank.", False),
]


@pytest.mark.parametrize(("said", "more"), TOLD)
def test_only_a_day_that_is_certain_is_told(said: str, more: str) -> None:
    """A weekday of the days to come is told with its date; one that may mean another week is not."""
    assert format_day([turn(0, said)]) == TODAY + more


@pytest.mark.parametrize(("written", "known"), WRITTEN)
def test_a_date_that_follows_from_what_was_said_has_a_source(written: str, known: bool) -> None:
    """A model may write a weekday as its date, in each language; other numbers still need somebody who said them."""
    said = turn(0, "Let's meet on Monday, not tomorrow.")
    sources = sources_of([said.parts[0].text, *sayings_of_day([said])], ["They", "Sie"])
    assert (not unfounded(written, sources)) == known


@pytest.mark.parametrize(("said", "written", "known"), READ)
def test_which_week_a_weekday_means_is_read_by_the_model(said: str, written: str, known: bool) -> None:
    """The dates of a weekday that was said have a source, in the week before and in the week to come."""
    spoken = turn(0, said)
    sources = sources_of([said, *sayings_of_day([spoken])], ["Ines", "She", "Sie"])
    assert (not unfounded(written, sources)) == known


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", TODAY),
        ("Pacific/Kiritimati", TODAY),
        ("Pacific/Honolulu", "Wednesday, 8 October 2025; tomorrow is Thursday, 9 October"),
    ],
)
def test_the_day_is_that_of_the_people(zone: str, expected: str) -> None:
    """The day is told in the zone of the people, so that 'tomorrow' is the day that they mean."""
    assert format_day([turn(3, "Tomorrow at nine.")], ZoneInfo(zone)) == expected


def test_a_weekday_said_on_two_days_is_not_certain() -> None:
    """A batch may be older than a day: the same weekday in two weeks is two dates, and none is told."""
    first = turn(0, "Let's meet on Monday.")
    later = replace(turn(1, "On Monday, yes."), started_at=T0 + 5 * _DAY_S)
    assert format_day([first, later]) == "Tuesday, 14 October 2025; tomorrow is Wednesday, 15 October"


def test_no_day_without_turns() -> None:
    """A fold of notes alone has no day."""
    assert (format_day([]), sayings_of_day([])) == ("", [])


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.code)
def test_each_language_lists_its_days_first(language: object) -> None:
    """The words of a language begin with its weekdays from Monday on, then its months."""
    for monday, january in (("monday", "january"), ("montag", "januar")):
        values = getattr(language, "named_values")  # noqa: B009 - the parameter has no type of its own
        if monday in values:
            own = list(dict.fromkeys(values.values()))
            assert (own[0], own[7]) == (monday, january)
            return
    pytest.fail("Tell here how this language names Monday and January.")
