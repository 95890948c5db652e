"""Words that recognisers confuse have a small distance; words that they tell apart have a large one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.phonetic_search import find_near
from bot.brain.phonetics import phonemes_of
from tests.bot.brain.slow_search import phonetic_distance


def to_phonemes(word: str) -> str:
    """Return the phonemes of one word."""
    return phonemes_of(["".join(word.split())])[0]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("room", "rume"),
        ("tone", "towne"),
        ("phone", "fone"),
        ("knight", "night"),
        ("write", "rite"),
        ("blew", "blue"),
        ("sell", "cell"),
        ("Café", "cafe"),
        ("quick", "kwik"),
    ],
)
def test_what_sounds_alike_is_alike(left: str, right: str) -> None:
    """Words that sound alike have the same phonemes, however they are spelt."""
    assert to_phonemes(left) == to_phonemes(right)


@pytest.mark.parametrize(("near", "far"), [("rome", "ring"), ("ruhm", "rack"), ("roon", "rook"), ("rooms", "roots")])
def test_what_is_swapped_is_nearer(near: str, far: str) -> None:
    """Replacing a vowel or nasal by a similar one costs less than replacing a sound by a different one."""
    room = to_phonemes("room")
    assert phonetic_distance(to_phonemes(near), room) < phonetic_distance(to_phonemes(far), room)


def test_a_swallowed_vowel_is_more_than_a_slurred_one() -> None:
    """Leaving a vowel out costs more than adding one: 'Alex' is another person than 'Alexa'."""
    assert phonetic_distance(to_phonemes("alex"), to_phonemes("alexa")) > phonetic_distance(
        to_phonemes("alexa"), to_phonemes("alex")
    )


@given(st.text(max_size=12), st.text(max_size=12))
def test_distances_are_distances(left: str, right: str) -> None:
    """The distance is 0 only for equal sounds, is never negative, and is at most the sum of both lengths."""
    one, other = to_phonemes(left), to_phonemes(right)
    assert phonetic_distance(one, one) == 0.0
    assert 0.0 <= phonetic_distance(one, other) <= len(one) + len(other)
    assert (phonetic_distance(one, other) == 0.0) == (one == other)


@given(st.lists(st.text(st.characters(exclude_categories=["Zs", "Zl", "Zp", "Cc"]), max_size=9), max_size=9))
def test_words_together_sound_as_they_do_alone(words: list[str]) -> None:
    """The phonemes of a word do not depend on the words that are converted with it."""
    assert phonemes_of(words) == [phonemes_of([word])[0] for word in words]


@given(
    st.lists(st.text("AEIOUmnNszSJfvTkgpbtdrlwhy", min_size=1, max_size=9), max_size=8),
    st.lists(st.text("AEIOUmnNszSJfvTkgpbtdrlwhy", min_size=1, max_size=12), max_size=4),
    st.sampled_from([0.11, 0.16, 0.4]),
)
def test_all_near_pairs_are_found(heard: list[str], meant: list[str], share: float) -> None:
    """Comparing all at once finds the pairs that comparing each finds, with the same distances."""
    found = find_near(heard, [share] * len(heard), meant)
    assert found.left_out == 0
    expected = {
        (one, other): pytest.approx(distance)
        for one, sound in enumerate(heard)
        for other, name in enumerate(meant)
        if (distance := phonetic_distance(sound, name)) <= share * len(name) + 1e-6
    }
    assert {(one, other): distance for one, other, distance in found.pairs} == expected
