"""How words sound: what recognisers swap is near, what they tell apart is far."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.phonetics import apart, sounds


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
    """However it is spelt."""
    assert sounds(left) == sounds(right)


@pytest.mark.parametrize(("near", "far"), [("rome", "ring"), ("ruhm", "rack"), ("roon", "rook"), ("rooms", "roots")])
def test_what_is_swapped_is_nearer(near: str, far: str) -> None:
    """A neighbouring vowel or nasal is less than another sound."""
    room = sounds("room")
    assert apart(sounds(near), room) < apart(sounds(far), room)


def test_a_swallowed_vowel_is_more_than_a_slurred_one() -> None:
    """'Alex' is another person than 'Alexa'."""
    assert apart(sounds("alex"), sounds("alexa")) > apart(sounds("alexa"), sounds("alex"))


@given(st.text(max_size=12), st.text(max_size=12))
def test_distances_are_distances(left: str, right: str) -> None:
    """Nothing is apart from itself; nothing is nearer than that; and the whole of it is the most."""
    one, other = sounds(left), sounds(right)
    assert apart(one, one) == 0.0
    assert 0.0 <= apart(one, other) <= len(one) + len(other)
    assert (apart(one, other) == 0.0) == (one == other)
