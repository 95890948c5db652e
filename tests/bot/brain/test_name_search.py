"""Names are found as a slow search finds them, and hostile names cost no more than the bounds allow."""

from __future__ import annotations

from itertools import islice, permutations
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.brain import name_search, phonetic_search
from bot.brain.addressing import PersonName, calls_any
from bot.brain.name_search import CallEdges, FoundNames, SpokenName, find_each, prepare
from bot.brain.spoken_words import SpokenWords
from bot.brain.wakeword import edges_of_calls, is_call
from tests.bot.brain.slow_search import find

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORDS = (
    "roomtone", "room", "tone", "rome", "rumton", "ottoline", "otto", "line", "bartholomew", "Maximilian", "maxi",
    "ben", "benjamin", "the", "a", "hey", "please", "what", "is", "ten", "two", "and", "ask", "roomtone's", "romes",
    "lines", "hé", "where", "wheree", "don't", "小明", "x",
)  # fmt: skip
SPACES = st.sampled_from([" ", " ", " ", ", ", ". ", "? ", "-", ""])
TEXTS = st.lists(st.tuples(st.sampled_from(WORDS), SPACES), max_size=12).map(
    lambda parts: "".join(word + space for word, space in parts)
)
NAMES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


@settings(deadline=None)
@given(TEXTS, st.lists(NAMES, min_size=1, max_size=5))
def test_names_are_found_as_a_slow_search_finds_them(text: str, names: list[str]) -> None:
    """Searching for all names at once finds the same places as comparing each name with each stretch of words."""
    words, prepared = SpokenWords(text), _prepared(names)
    found = find_each(words, prepared)
    assert found.left_out == 0
    assert [list(places) for places in found.places] == [find(words, name) for name in prepared]


@settings(deadline=None)
@given(TEXTS, st.lists(NAMES, min_size=1, max_size=5))
def test_every_call_is_found_where_only_calls_are_looked_for(text: str, names: list[str]) -> None:
    """A name that is called is found too where only the edges of calls are searched."""
    words, prepared = SpokenWords(text), _prepared(names)
    if not len(words):
        return
    everywhere, at_calls = find_each(words, prepared), find_each(words, prepared, within=edges_of_calls(words))
    for places, found in zip(everywhere.places, at_calls.places, strict=True):
        assert {place for place in places if is_call(words, place)} <= set(found)


def _prepared(names: list[str]) -> list[SpokenName]:
    return [name for name in map(prepare, names) if name is not None]


def _crowd(words: list[str], *, of: int) -> list[str]:
    random = Random(1)
    return [" ".join(random.choice(words) for _ in range(of))[:32] for _ in range(99)]


SCRAMBLED = ["".join(letters) for letters in islice(permutations("ramonite"), 0, 40_000, 100)]
LETTERS = [f"{letter}" for letter in "abcdefgh"] * 50
PLEASE = [word for pair in zip(SCRAMBLED[:200], ["please"] * 200, strict=True) for word in pair]
ORDINARY = list(WORDS[:20])


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (SCRAMBLED, _crowd(SCRAMBLED, of=4)),
        (LETTERS, _crowd(LETTERS, of=16)),
        (PLEASE, _crowd(PLEASE, of=4)),
        (ORDINARY * 20, _crowd(ORDINARY, of=7)),
        (["hey", "a"] * 200, _crowd(["a"], of=16)),
    ],
    ids=["scrambled", "letters", "calls", "ordinary", "same"],
)
def test_hostile_names_cost_no_more_than_the_bounds(
    words: list[str], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """99 names of 32 characters that resemble the 400 words of a text are compared only so often, however they do."""
    tables: list[tuple[int, int]] = []
    compare = phonetic_search._least_distances

    def counted(heard: NDArray[np.uint8], meant: NDArray[np.uint8]) -> NDArray[np.uint8]:
        tables.append((heard.shape[1], meant.shape[1]))
        return compare(heard, meant)

    monkeypatch.setattr(phonetic_search, "_least_distances", counted)
    found: FoundNames = find_each(SpokenWords(" ".join(words)), _prepared(names))
    assert found.compared <= phonetic_search.MOST_COMPARED
    assert sum(map(len, found.places)) <= name_search.MOST_PLACES
    assert all(
        heard <= name_search.MOST_HEARD + name_search.MOST_JOINED and meant <= name_search.MOST_NAMES
        for heard, meant in tables
    )
    assert len(tables) <= 1


def test_only_names_in_the_text_are_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 99 people, those that have no word in common with the text cost no comparison."""
    people = [PersonName.prepare(f"Somebody{number} Else{number}") for number in range(98)]
    asked: list[int] = []

    def counted(words: SpokenWords, names: list[SpokenName], *, within: CallEdges) -> FoundNames:
        asked.append(len(names))
        return find_each(words, names, within=within)

    monkeypatch.setattr("bot.brain.addressing.find_each", counted)
    assert calls_any("Bartholomew, are you coming?", [*people, PersonName.prepare("Bartholomew")])
    assert not calls_any("Are we all here now?", people)
    assert asked == [1]


def test_written_names_are_found_in_a_crowd() -> None:
    """A name that is written as it is, is found though a crowd of similar names is there."""
    people = [PersonName.prepare(name) for name in (*_crowd(SCRAMBLED, of=4), "Bartholomew")]
    assert calls_any("Bartholomew, are you coming? " + " ".join(SCRAMBLED[:50]), people)
