"""Different forms of one word have the same stem."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.languages import LANGUAGES

stem = LANGUAGES[0].stem


@pytest.mark.parametrize(
    "forms",
    [
        "bring brings bringing",
        "plan planned planning",
        "move moved moving",
        "visit visited visits visiting",
        "cookie cookies",
        "party parties",
        "ada ada's",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    """Endings and the possessive are removed. The stem itself need not be a word."""
    assert len({stem(word) for word in forms.split()}) == 1


@pytest.mark.parametrize("word", ["žluťoučký", "7702", "o'clock", "кошки", ""])
def test_other_words_stay_as_they_are(word: str) -> None:
    """Words of other alphabets, numbers and contractions stay unchanged, because they have no English endings."""
    assert stem(word) == word


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", max_size=14))
def test_a_stem_is_never_longer_than_a_letter_more(word: str) -> None:
    """A stem is at most one letter longer than its word, because a dropped -e may come back."""
    assert len(stem(word)) <= len(word) + 1
    assert bool(stem(word)) == bool(word)


def test_threads_do_not_disturb_each_other() -> None:
    """Several threads can find stems at the same time, because the store indexes in a thread of its own while the event
    loop searches.
    """
    words = [f"{chr(97 + one)}{chr(97 + two)}nning" for one in range(26) for two in range(26)]
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append([stem(word) for word in words])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(each == found[0] for each in found)
