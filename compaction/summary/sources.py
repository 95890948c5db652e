"""What a model's text may be made of, and what of it has no source. Pure.

Each name and number must stand in a source: the batch, the turns before, the summary so far, the known facts, the notes
or the roster. Only what is certain counts as unfounded: other forms of a name and other ways to say a number are known.
A weekday beside a date is the calendar's, or somebody said it of that date.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.meaning import meaning
from compaction.language.terms import UNSPACED
from compaction.language.text import sentences, words
from compaction.summary.dates import Period, date_spans, is_short_for
from compaction.summary.said_values import SaidValues, forms_of_values, spelled_out, values_of
from compaction.summary.weekdays import weekdays_beside_dates

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

# One name is a form of another if it begins with so many letters of it: German of Germany.
_LEAST_STEM = 4
# An abbreviation as short as this (TV, GM, NPC) is no name.
_ABBREVIATION_CHARS = 3
# A sentence in a script without spaces shares at least this of its pairs of characters with its sources.
_LEAST_PAIRS = 0.25


@dataclass(frozen=True, slots=True)
class Sources:
    """What a model's text may be made of: words in lower case without endings, and names.

    `said`: numbers and other values. `pairs`: neighbouring characters of scripts without spaces. `periods`: what 'last
    month' and the like mean. `today`: the last day of the talk. `dated`: the weekdays that were said beside a date: the
    weekday, the day and the month.
    """

    words: frozenset[str]
    names: frozenset[str]
    said: SaidValues
    pairs: frozenset[str]
    periods: frozenset[Period] = frozenset()
    today: date | None = None
    dated: frozenset[tuple[int, int, int]] = frozenset()


def sources_of(
    texts: Iterable[str],
    people: Iterable[str],
    periods: frozenset[Period] = frozenset(),
    today: date | None = None,
) -> Sources:
    """Return the sources in these texts, names of people, and days, months and years that are meant.

    Without `today` no weekday is compared with its date.
    """
    people = tuple(people)
    roster = name_words(people)
    dated: set[tuple[int, int, int]] = set()
    every_word, names, values, pairs = set(roster), set(roster), set[str](), set[str]()
    for text in (*texts, *people):
        every_word.update(map(without_ending, words(text)))
        pairs.update(_pairs(text))
        for sentence in sentences(text):
            told = meaning(sentence)
            names |= told.names
            spelled = spelled_out(sentence, told)
            values |= forms_of_values(sentence, told) | spelled
            every_word |= spelled
            if told.values and today is not None:
                dated.update(*(each.said_as for each in weekdays_beside_dates(sentence)))
    known = frozenset(every_word)
    said = SaidValues.among(frozenset(values), known, people=len(set(people)))
    return Sources(known, frozenset(names), said, frozenset(pairs), periods, today, frozenset(dated))


def unfounded(text: str, sources: Sources, also_names: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the names and values of a text that have no source; none for a good text.

    `also_names`: words that are names elsewhere in the same answer.
    """
    found: set[str] = set()
    for sentence in sentences(text):
        lacking = _lacking(sentence, sources, also_names)
        weekdays, wrong = _weekdays_of_calendar(sentence, sources)
        if lacking and (spans := {*date_spans(sentence, sources.periods), *weekdays}):
            rest, dates = _parted(sentence, sorted(spans))
            lacking -= {*words(dates), *meaning(dates).values} - _lacking(rest, sources, also_names)
        found |= lacking | wrong
    return frozenset(found)


def _lacking(sentence: str, sources: Sources, also_names: frozenset[str]) -> set[str]:
    told = meaning(sentence, sources.names | also_names)
    found = {name for name in told.names if not _is_name_known(name, sentence, sources)}
    found.update(value for value in values_of(sentence, told) if not sources.said.have(value, sentence))
    pairs = _pairs(sentence)
    if pairs and sources.pairs and len(pairs & sources.pairs) < _LEAST_PAIRS * len(pairs):
        found.add(sentence)
    return found


def _weekdays_of_calendar(sentence: str, sources: Sources) -> tuple[set[tuple[int, int]], set[str]]:
    """Return where weekdays stand that need no source, because their dates have them, and the wrong weekdays."""
    if sources.today is None:
        return set(), set()
    found = weekdays_beside_dates(sentence)
    right = [each for each in found if each.agrees(sources.today)]
    # In whatever year a date has this weekday, somebody must have meant that year.
    certain = {each.span for each in right if each.is_near(sources.today) or str(each.year) in sources.said.values}
    other = [
        each
        for each in found
        if each.certain and each not in right and not (each.is_short and each.word in sources.names)
    ]
    return certain, {each.word for each in other if each.said_as.isdisjoint(sources.dated)}


def _parted(sentence: str, spans: Iterable[tuple[int, int]]) -> tuple[str, str]:
    """Return what a sentence is without these places, and what stands there."""
    rest, taken, end = "", "", 0
    for begin, after in spans:
        rest += f"{sentence[end:begin]} "
        taken += f"{sentence[begin:after]} "
        end = after
    return rest + sentence[end:], taken


def name_words(names: Iterable[str]) -> frozenset[str]:
    """Return the words of these names in lower case without endings."""
    return frozenset(without_ending(word) for name in names for word in words(name))


def without_ending(word: str) -> str:
    """Return a word without its possessive and plural ending."""
    word = word.removesuffix("'s").removesuffix("'")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _is_name_known(name: str, sentence: str, sources: Sources) -> bool:
    if (len(name) <= _ABBREVIATION_CHARS and name.upper() in sentence) or is_short_for(
        name, sources.said.values, sentence
    ):
        return True
    return all(part in sources.words or _is_form(part, sources.names) for part in map(without_ending, words(name)))


def _is_form(name: str, names: Iterable[str]) -> bool:
    return any(
        min(len(name), len(each)) >= _LEAST_STEM and (name.startswith(each) or each.startswith(name)) for each in names
    )


def _pairs(text: str) -> frozenset[str]:
    """Return the neighbouring characters of the parts of a text that are written without spaces."""
    return frozenset(
        run[at : at + 2] for found in UNSPACED.finditer(text) for run in [found.group()] for at in range(len(run) - 1)
    )
