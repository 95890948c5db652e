"""The sentences about shared screens."""

from __future__ import annotations

import pytest

from bot.screen.messages import ANY_SURFACE, RECAP_CHARS, describe_surface, format_recap


@pytest.mark.parametrize(
    ("told", "surface"),
    [
        ("monitor", "the whole screen"),
        ("window", "a window"),
        ("browser", "a browser tab"),
        ("", ANY_SURFACE),
        ("<b>", ANY_SURFACE),
        (None, ANY_SURFACE),
    ],
)
def test_a_surface_is_one_we_know(told: object, surface: str) -> None:
    """If the page reports an unknown kind of surface, the description is the general one."""
    assert describe_surface(told) == surface


def test_a_recap_is_one_sentence_or_two() -> None:
    """A recap says who stopped sharing, and lists the last things seen, oldest first, if there are any."""
    assert (
        format_recap("Ada", "a window", lasted_s=0.0, seen=())
        == "Ada stopped sharing a window after less than a minute."
    )
    told = format_recap("Ada", "a window", lasted_s=720.0, seen=("Round 1.", "Round 2"))
    assert told == "Ada stopped sharing a window after 12 minutes. Last seen on it: Round 1; Round 2."


def test_a_recap_stays_short() -> None:
    """A long recap keeps the newest notes."""
    told = format_recap("Ada", "a window", lasted_s=60.0, seen=[f"note {n} " + "x" * 150 for n in range(9)])
    assert len(told) <= RECAP_CHARS
    assert "after 1 minute." in told
    assert "note 8" in told
    assert "note 0" not in told
